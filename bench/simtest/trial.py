"""Runs a case: one process of the run after another, each with what is done to it."""

from __future__ import annotations

import asyncio
import json
import math
import traceback
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import anyio

from bench._lib.served import served_by
from bench.simtest.books import Books
from bench.simtest.bounds import Bounds
from bench.simtest.case import Act, Case
from bench.simtest.endings import Ending, check_ending
from bench.simtest.judge import Judge
from bench.simtest.reasons import holds
from bench.simtest.record import Fact, Memory, Record
from bench.simtest.rules import Fault
from bench.simtest.server import Server
from bench.simtest.tasks import Mishaps, changed, make_case_algorithm, make_case_task
from flowevolve._util import clock
from flowevolve._util.errors import EngineError, FlowevolveError, InputError
from flowevolve._util.tasks import Pulse, first_leaf
from flowevolve.core.acts import Act as SteeringAct, Approve, Comment, Inject, RaiseBudget, Veto
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Budget
from flowevolve.core.event_kinds import RunStopping
from flowevolve.core.events import Event
from flowevolve.engine.engine import Engine
from flowevolve.runner.assemble import make_admission
from flowevolve.runner.plan import Plan, ProvidedObjects, make_plan
from flowevolve.runner.run import Watchers, run_plan

HOUR = 3600.0
MOST_FACTS = 10_000
"""A run is at fault if it makes this many events and calls and uses nothing of any limit of its budget, because it
might go on for ever.
"""


@dataclass
class Trial:
    """The outcome of a case: the facts that were kept, and the rules that were broken."""

    facts: list[Fact] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)
    """How each process ended."""

    def log(self) -> str:
        """All facts, and how the processes ended, as text, which is always the same for the same case."""
        return "\n".join([*map(_line, self.facts), *self.endings])


def run_case(case: Case) -> Trial:
    """Run a case to its end, or until a rule is broken."""
    trial = Trial()
    for life in range(len(case.lives)):
        if not _Process(case, life, trial).run():
            break
    return trial


def plan_of(case: Case, life: int, server: Server | None = None) -> Plan:
    """The plan of one process of a case.

    Raises:
        InputError: if there can be no such run.
    """
    config = case.config(life)
    mishaps = Mishaps(case.faults_of(life), case.seed)
    prompts = config.sim.world == "rules"
    task = make_case_task(config.algorithm.name, mishaps, prompts=prompts)
    opening = None if server is None else partial(served_by, server)
    algorithm = partial(make_case_algorithm, mishaps=mishaps)
    given = ProvidedObjects(task)
    if opening is None:
        return make_plan(config, given, algorithm=algorithm)
    return make_plan(config, given, algorithm=algorithm, opens_roles=opening)


class _Process:
    """One process of a run."""

    def __init__(self, case: Case, life: int, trial: Trial) -> None:
        self._case = case
        self._life = life
        self._trial = trial
        self._before = tuple(trial.facts)
        self._acts = deque(sorted(case.lives[life].acts, key=lambda act: act.at))
        self._books = Books()
        for fact in self._before:
            self._books.take(fact)
        self._books.faults.clear()
        self._record = Record(self._before, self._watch, case.disk_seconds)
        self._seen = 0
        self._used: tuple[float, ...] = ()
        """How much was used of each limit when that last changed."""
        self._used_at = 0
        """How many facts had been seen at that time."""
        self._cut_off = False
        """Whether the process was killed, or the task that awaited the run was cancelled."""
        self._due: list[Act] = []
        self._woken = Pulse()
        self._plan: Plan | None = None
        self._engine: Engine | None = None
        self._most_calls = 0
        self._seed = Artifact({"none": ""})
        self._scope: anyio.CancelScope | None = None

    def run(self) -> bool:
        """Run the process. Returns whether the run goes on after it."""
        goes_on = False
        try:
            goes_on = clock.run(self._go, clock="virtual")
        except Exception as error:  # noqa: BLE001 - whatever a run raises is what is looked for
            self._books.fault("progress" if "nothing to wait for" in str(error) else "crash", _named(error))
        self._trial.facts = self._record.facts
        self._trial.faults += self._books.faults
        return goes_on and not self._trial.faults

    async def _go(self) -> bool:
        case, books = self._case, self._books
        config = case.config(self._life)
        server = Server(config.sim.world, case.profile, case.faults_of(self._life), case.seed, self._on_call)
        plan = plan_of(case, self._life, server)
        plan = replace(plan, staleness=Judge(plan.staleness, books))
        self._plan = plan
        self._seed = plan.task.seed()
        books.open_with(_bounds(plan))
        self._most_calls = make_admission(config).first(config.llm.concurrency)
        before = asyncio.all_tasks()
        error = await self._run(plan)
        left = [task for task in asyncio.all_tasks() - before if not task.done()]
        if left or server.under_way:
            books.fault("left over", f"{server.under_way} calls are under way, and {left} go on")
        if self._engine is None and error is not None:
            books.fault("crash", f"the run did not begin: {error}")
        if self._cut_off or self._record.full or books.faults or self._engine is None:
            self._trial.endings.append("cut off")
            return bool(self._record.facts)
        ending = Ending(
            case, self._life, plan, books, self._engine.report, self._record.facts, self._record.result, error
        )
        check_ending(ending)
        self._trial.endings.append(ending.told())
        return ending.report.stop_reason.leaves_work or ending.held_out_failed or self._has_more()

    def _has_more(self) -> bool:
        """Whether the next process is given a larger budget."""
        following = self._case.lives[self._life + 1 :]
        return bool(following) and any(name.startswith("budget.") for name in following[0].changes)

    async def _run(self, plan: Plan) -> FlowevolveError | None:
        """Run the plan. Returns the error with which it failed, if any."""
        history = Memory(self._before) if any(isinstance(fact, Event) for fact in self._before) else None
        failure: FlowevolveError | None = None
        with anyio.CancelScope() as self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch_progress)
                try:
                    await run_plan(plan, lambda: self._record, Watchers(), self._act, history)
                except FlowevolveError as error:
                    failure = error
                tasks.cancel_scope.cancel()
        if isinstance(failure, EngineError):
            raise failure
        return failure

    # What is done to it

    def _watch(self, fact: Fact) -> None:
        self._seen += 1
        self._books.take(fact)
        if isinstance(fact, Event) and isinstance(fact.body, RunStopping):
            self._judge(fact.body.reason)
        if (used := self._books.used()) != self._used:
            self._used, self._used_at = used, self._seen
        if self._seen - self._used_at > MOST_FACTS:
            self._books.fault("progress", f"{MOST_FACTS} events and calls, in which nothing was used of any limit")
        if self._books.faults:
            self._end()
        while self._acts and self._acts[0].at <= self._seen:
            self._begin(self._acts.popleft())

    def _judge(self, reason: str) -> None:
        deeds = {act.deed for act in self._case.lives[self._life].acts}
        if self._plan is not None and not holds(reason, self._plan, self._books, deeds):
            self._books.fault("stop reason", f"{reason} at {self._books.time:.3f} s")

    def _begin(self, act: Act) -> None:
        match act.deed:
            case "kill" | "abandon":
                self._cut_off = True
                self._end()
                if act.deed == "kill":
                    self._books.closed = True
                    self._record.kill(act.size)
            case "disk full":
                self._record.full = True
            case _:
                self._due.append(act)
                self._woken.fire()

    def _end(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    async def _act(self, engine: Engine) -> None:
        self._engine = engine
        async with anyio.create_task_group() as tasks:
            while True:
                while self._due:
                    tasks.start_soon(self._do, engine, self._due.pop(0))
                await self._woken.wait()

    async def _do(self, engine: Engine, act: Act) -> None:
        match act.deed:
            case "stop":
                engine.stop()
            case "cancel":
                engine.cancel()
            case "pause" | "pause items":
                engine.pause(items=act.deed == "pause items")
                await anyio.sleep(100 * act.size)
                engine.unpause()
            case "veto" | "approve" | "comment" | "raise" | "edit":
                steered = self._steering(act)
                with suppress(InputError):  # it can't be done now
                    if steered is not None:
                        await engine.act(steered, "simtest")
            case "inject":
                with suppress(InputError):  # the run has ended, has no budget left, or takes no candidates
                    await engine.inject(changed(self._seed, act.at), attributes={"given": act.at})

    def _steering(self, act: Act) -> SteeringAct | None:
        """The act of steering that a deed stands for now; None if there is nothing that it could be about."""
        books = self._books
        limits = {} if books.bounds is None else books.bounds.limits
        alive = [name for name, status in books.pool.statuses.items() if status in ("proposed", "confirmed")]
        rejected = [name for name, status in books.pool.statuses.items() if status == "rejected"]
        examples = [] if self._plan is None else [each.id for each in self._plan.task.data.val]
        match act.deed:
            case "veto" if name := _pick(alive, act.size):
                return Veto(name)
            case "approve" if name := _pick([*books.pool.vetoed, *rejected], act.size):
                return Approve(name)
            case "comment" if name := _pick([*books.pool.scores, *examples], act.size):
                said = "Say it in fewer words."
                return Comment(said, example=name) if name in examples else Comment(said, candidate=name)
            case "raise" if name := _pick(list(limits), act.size):
                return RaiseBudget({name: math.ceil(1.2 * limits[name]) if limits[name] > 1 else 2 * limits[name]})
            case "edit" if name := _pick(list(books.pool.scores), act.size):
                return Inject(changed(self._seed, act.at).components, name)
            case _:
                return None

    async def _watch_progress(self) -> None:
        """Add a fault if nothing happens for an hour."""
        while True:
            before = self._seen
            await anyio.sleep(HOUR)
            if self._seen == before:
                self._books.fault("progress", f"nothing has happened for an hour, after {before} events and calls")
                self._end()

    def _on_call(self, under_way: int, began: bool) -> None:
        books = self._books
        if not began:
            books.surplus_calls = max(0, books.surplus_calls - 1)
            return
        limit = self._most_calls if books.call_limit is None else books.call_limit
        if under_way > limit + books.surplus_calls:
            books.fault("call limit", f"{under_way} calls are under way, of {limit}")
        if (
            books.bounds is not None
            and not books.ended
            and books.spending.tokens >= books.bounds.limits.get("tokens", math.inf)
        ):
            books.fault("budget", f"a call was made after {books.spending.tokens} tokens")


def _pick(names: Sequence[str], part: float) -> str | None:
    return names[min(len(names) - 1, int(part * len(names)))] if names else None


def _bounds(plan: Plan) -> Bounds:
    config, graph = plan.config, plan.algorithm.graph()
    return Bounds(
        graph,
        config.algorithm.mode == "sync",
        config.algorithm.width,
        {stage.name: stage.workers for stage in graph.stages},
        _limits(config.budget),
        config.allocation.policy != "fixed",
    )


def _limits(budget: Budget) -> dict[str, float]:
    limits = {str(name): limit for name, limit in budget.limits().items()}
    if (seconds := budget.time_limit()) is not None:
        limits["seconds"] = seconds
    return limits


def _line(fact: Fact) -> str:
    if isinstance(fact, Event):
        return fact.to_json()
    text = fact.error if fact.reply is None else fact.reply.text
    times = [round(each, 6) for each in (fact.queued, fact.started, fact.finished)]
    return json.dumps([fact.scope.stage, fact.scope.item, fact.scope.index, text, fact.attempts, *times])


def _named(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        error = first_leaf(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({place.name}, line {place.lineno} of {place.filename.rpartition('/')[2]})"
