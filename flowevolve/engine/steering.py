"""Acts by which somebody who watches a run steers it. Each is journaled with the name of that person, then performed.

An act's effect on the rest of the run follows from its event (`flowevolve.engine.acts_taken`), so a run that is killed
right after the event resumes as if the act had been performed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.acts import Act, Approve, Comment, Inject, Pause, RaiseBudget, Stop, Unpause, Veto
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.event_kinds import RunSteered
from flowevolve.core.item_ids import OUTSIDE
from flowevolve.core.pool import DEFAULT_POOL, Candidate, Vetoed
from flowevolve.core.task import Dataset, Task
from flowevolve.engine.acts_taken import ActsTaken, Submission, takes_back
from flowevolve.engine.dispatcher import Dispatcher
from flowevolve.engine.executor import Executor
from flowevolve.engine.injection import OPERATOR, inject


class Controls(Protocol):
    """The direct controls of an engine."""

    @property
    def ended(self) -> bool: ...
    def pause(self, *, items: bool) -> None: ...
    def unpause(self) -> None: ...
    def stop(self) -> None: ...


@runtime_checkable
class HasTask(Protocol):
    """An algorithm that was created for a task."""

    @property
    def task(self) -> Task: ...


class Steering:
    """Performs acts in one run."""

    def __init__(self, controls: Controls, dispatcher: Dispatcher, executor: Executor, algorithm: Algorithm) -> None:
        self._controls = controls
        self._dispatcher = dispatcher
        self._executor = executor
        self._algorithm = algorithm

    async def act(self, act: Act, by: str) -> None:
        """Raises: InputError if the act can't be performed, which is journaled, too."""
        steered = RunSteered(by, act, None)
        try:
            await self._do(steered)
        except InputError as error:
            self._log_refusal(steered, error)
            raise

    def _log_refusal(self, steered: RunSteered, error: InputError) -> None:
        if not self._controls.ended:
            self._dispatcher.log(RunSteered(steered.by, steered.act, str(error)))

    async def _do(self, steered: RunSteered) -> None:
        match steered.act:
            case Pause() | Unpause() | Stop():
                self._control(steered, steered.act)
            case RaiseBudget() as raised:
                self._raise_budget(steered, raised)
            case Comment() as comment:
                self._check_subject(comment)
                self._dispatcher.log(steered)
                self._dispatcher.services.comments.add(comment)
            case Veto(candidate=name):
                self._check_veto(name)
                self._dispatcher.log(steered)
                self._set_veto(name, stands=True)
            case Approve(candidate=name) if takes_back(self._dispatcher.pool, name):
                self._check_time("approve")
                self._dispatcher.log(steered)
                self._set_veto(name, stands=False)
            case (Inject() | Approve()) as act:
                if isinstance(act, Approve):
                    self._check_rejected(act.candidate)
                await self._send(steered, Submission.of(act, self._dispatcher.pool), journal=True)

    # An interrupted run

    def restore(self, taken: ActsTaken) -> None:
        """Carry out earlier acts again if the journal of the interrupted run ends before their effects."""
        for name, stands in taken.vetoes.items():
            if self._dispatcher.pool.vetoed(name) != stands:
                self._set_veto(name, stands=stands)

    async def send_again(self, steered: RunSteered, submission: Submission) -> None:
        """Send in again a candidate whose submission was cut off. If it is refused now, that is journaled."""
        try:
            await self._send(steered, submission, journal=False)
        except InputError as error:
            self._log_refusal(steered, error)

    # What acts do

    def _control(self, steered: RunSteered, act: Pause | Unpause | Stop) -> None:
        stopping, pause = self._dispatcher.stopping, self._dispatcher.pause
        if stopping.reason is not None and (stopping.hurry or not isinstance(act, Stop)):
            raise InputError(f"{act.act}: the run is ending already ({stopping.reason.said})")
        if isinstance(act, Unpause) and not pause.new_flows:
            raise InputError("unpause: the run is not paused")
        self._dispatcher.log(steered)
        match act:
            case Pause(items=items):
                self._controls.pause(items=items)
            case Unpause():
                self._controls.unpause()
            case Stop():
                self._controls.stop()

    def _raise_budget(self, steered: RunSteered, act: RaiseBudget) -> None:
        ledger, stopping = self._dispatcher.ledger, self._dispatcher.stopping
        limits = act.by_name()
        for name, limit in limits.items():
            before = ledger.limit(name)
            what, unit = ("time", " s") if name == "seconds" else (name, "")  # it may be given in minutes or hours
            if before is None:
                raise InputError(f"raise_budget: the run has no limit of {what} that could be raised")
            if limit <= before:
                raise InputError(
                    f"raise_budget: {what} is limited to {before:.12g}{unit}; give more than that, not "
                    f"{limit:.12g}{unit}"
                )
        if stopping.reason is not None and not (stopping.is_short and stopping.reason in limits):
            raise InputError(
                f"raise_budget: the run is ending already ({stopping.reason.said}); resume it with more: "
                "flowevolve resume DIR --set budget.…=…"
            )
        self._dispatcher.log(steered)
        ledger.raise_limits(limits)
        stopping.go_on()

    def _check_subject(self, comment: Comment) -> None:
        if comment.candidate is not None:
            self._kept("comment", comment.candidate)
            return
        data = _data(self._algorithm)
        if all(example.id != comment.example for example in (*data.train, *data.val)):
            raise InputError(f"comment: the task has no training or validation example {comment.example!r}")

    def _kept(self, act: str, name: str) -> Candidate:
        """The candidate of this id.

        Raises:
            InputError: if there is none, or it was rejected.
        """
        pool = self._dispatcher.pool
        if name not in pool:
            raise InputError(f"{act}: there is no candidate {name!r}")
        if not pool.keeps(name):
            raise InputError(f"{act}: {name} was rejected, so nothing is made of it")
        return pool[name]

    def _check_veto(self, name: str) -> None:
        pool, candidate = self._dispatcher.pool, self._kept("veto", name)
        self._check_time("veto")
        if pool.vetoed(name):
            raise InputError(f"veto: {name} is vetoed already")
        if pool.status(name) in ("rejected", "revoked"):
            raise InputError(f"veto: {name} is {pool.status(name)} already")
        others = pool.snapshot().candidates(pool=pool.pool_of(name) or DEFAULT_POOL)
        if all(each.id == name for each in others):
            raise InputError(f"veto: {name} is all that the run can go on from; inject another candidate first")
        self._algorithm.check_veto(candidate)

    def _check_time(self, act: str) -> None:
        if self._dispatcher.stopping.finishing:
            raise InputError(
                f"{act}: the run is ending, and its candidates no longer change; resume it, or branch from another one"
            )

    def _check_rejected(self, name: str) -> None:
        pool = self._dispatcher.pool
        if name not in pool:
            raise InputError(f"approve: there is no candidate {name!r}")
        if pool.status(name) != "rejected" or pool.keeps(name):
            raise InputError(
                f"approve: {name} is {pool.status(name)}; nobody has vetoed it, and no stage has turned it down"
            )

    def _set_veto(self, name: str, *, stands: bool) -> None:
        of = self._dispatcher.pool.pool_of(name) or DEFAULT_POOL
        self._dispatcher.services.apply([Vetoed(name, stands, of)], OUTSIDE)

    async def _send(self, steered: RunSteered, submission: Submission, *, journal: bool) -> None:
        act = steered.act
        attributes: Mapping[str, JSON] = {"approved": act.candidate} if isinstance(act, Approve) else {}
        for parent in submission.parents if isinstance(act, Inject) else ():
            if submission.artifact == self._dispatcher.pool[parent].artifact:
                raise InputError(f"inject: the texts are the same as those of {parent}; change one of them")

        def before() -> None:
            tried = Candidate("", submission.artifact, submission.parents, OPERATOR, attributes=attributes)
            self._algorithm.inject(tried)  # if the algorithm refuses it, nothing else has been journaled
            if journal:
                self._dispatcher.log(steered)

        await inject(
            self._dispatcher,
            self._executor,
            self._algorithm,
            submission.artifact,
            submission.parents,
            attributes,
            before,
        )


def _data(algorithm: object) -> Dataset:
    """The examples of the algorithm's task; empty for an algorithm without a task."""
    return algorithm.task.data if isinstance(algorithm, HasTask) else Dataset((), ())
