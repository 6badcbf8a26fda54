"""Runs that lead nowhere: flows that produce nothing, which is reported after the first ones and ends the run if it
can't get better; and flows that propose without end, because their proposals are charged to nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from flowevolve._util.errors import EngineError, FlowevolveError, FruitlessError, TaskFailedError
from flowevolve.core.discard_reasons import NO_TRACE, UNCHANGED, UNREADABLE, in_vain
from flowevolve.core.event_kinds import CandidateProposed, FlowClosed, FlowOpened, ItemDone, PoolCommitted, RunFruitless
from flowevolve.core.events import Event, Log
from flowevolve.core.graph import Graph
from flowevolve.core.item import INJECTION
from flowevolve.core.item_ids import flow_of
from flowevolve.core.pool import SEED, Pool
from flowevolve.core.reply_reading import Reason
from flowevolve.engine.counters import ReplyCounts, accepts

FIRST = 10
"""After this many pieces of work, all of them in vain, the run reports it."""
MOST_IN_VAIN = 30
"""After this many, by default, the run ends."""
_ROUNDS = 2
"""How often each component has to be found without a trace before the run ends."""
_SHOWN = 3
_CHARACTERS = 300
_MENDS = {
    UNCHANGED: "The model gives back what it was given: take one that writes better, or a higher temperature",
    UNREADABLE: "Replies don't have the form that is asked for: take a model that keeps to it",
}


class FruitlessCheck:
    """Notes what comes of the flows of one run, for as long as nothing does. What it knows is a function of the run's
    event log, so a resumed run goes on where the interrupted one was.
    """

    def __init__(self, graph: Graph) -> None:
        self._stages = {stage.name for stage in graph.stages}
        self._in_vain: Counter[str] | None = Counter()
        """How much work was in vain for each reason; None as soon as a candidate has been proposed or accepted."""
        self._reported = False
        self._charges = False
        """Whether any flow has charged a proposal, apart from the flows of init, finish and injected candidates."""
        self._uncharged = 0
        """How many candidates were proposed by such flows that ended while none of them had charged a proposal."""
        self._proposed = Counter[int]()
        """The same for each open flow."""
        self._special = set[int]()
        """The open flows of init, finish and injected candidates."""

    def take(self, event: Event) -> None:
        """An event sink."""
        match event.body:
            case FlowOpened(flow=flow, trigger=trigger, phase=phase) if phase or trigger == INJECTION:
                self._special.add(flow)
            case FlowClosed(flow=flow):
                self._special.discard(flow)
                self._uncharged += self._proposed.pop(flow, 0)
            case ItemDone() as done if done.stage in self._stages:
                self._done(done)
            case CandidateProposed(item=item, operator=operator) if operator != SEED:
                self._in_vain = None
                if not self._charges and flow_of(item) not in self._special:
                    self._proposed[flow_of(item)] += 1
            case PoolCommitted(stage=stage, changes=changes) if stage != "init" and any(map(accepts, changes)):
                self._in_vain = None
            case RunFruitless():
                self._reported = True

    def _done(self, done: ItemDone) -> None:
        if done.cost.proposals and flow_of(done.item) not in self._special:
            self._charges = True
        if self._in_vain is not None and done.outcome == "discarded" and in_vain(done.reason):
            self._in_vain[done.reason] += 1

    @property
    def nothing_yet(self) -> bool:
        """Whether no candidate has been proposed or accepted so far."""
        return self._in_vain is not None

    def no_fruits(self, pool: Pool, most: int, replies: ReplyCounts, log: Log) -> FlowevolveError | None:
        """Report it, once, if the first flows were all in vain; returns the error that ends the run, or None while it
        may still get better. ``most`` and ``replies`` are those of `fruitless`.
        """
        if self._in_vain is None or sum(self._in_vain.values()) < FIRST:
            return None
        if not self._reported:
            log(RunFruitless(dict(self._in_vain)))
        seed = next(iter(pool.snapshot().candidates(vetoed=True)), None)
        components = 1 if seed is None else len(seed.artifact)
        return fruitless(self._in_vain, components=components, most=most, replies=replies)

    def not_charged(self) -> EngineError | None:
        """The error that ends a run with a limit of proposals whose flows propose candidates without charging them."""
        if self._charges or self._uncharged < FIRST:
            return None
        return EngineError(
            f"the first {self._uncharged} candidates that flows of the algorithm proposed were charged to nothing, so "
            "that budget.proposals would never end the run: charge each in the stage that proposes it, with "
            "context.spend(flowevolve.Cost(proposals=1))"
        )


def top_reasons(reasons: Mapping[str, int]) -> str:
    """The most frequent reasons with their counts, in words."""
    most = sorted(reasons.items(), key=lambda each: -each[1])[:_SHOWN]
    return ", ".join(f"{count} × {' '.join(reason.split())[:_CHARACTERS]}" for reason, count in most)


def fruitless(
    reasons: Mapping[str, int], *, components: int, most: int, replies: ReplyCounts
) -> FlowevolveError | None:
    """The error that ends a run in which everything was in vain for these reasons; None while it may still get better.

    ``components`` is how many components the artifact has, ``most`` the number of pieces of work after which the run
    ends in any case, and ``replies`` counts the replies that could not be read.
    """
    count = sum(reasons.values())
    if count >= max(FIRST, _ROUNDS * components) and all(reason.startswith(NO_TRACE) for reason in reasons):
        return TaskFailedError(
            f"the task's rollouts name no component that is to evolve ({top_reasons(reasons)}); name it in each: "
            'Rollout(..., calls=(Call("prompt", {"input": ...}, output),))'
        )
    if count < most:
        return None
    top = max(reasons, key=lambda reason: reasons[reason])
    mend = _mend_of_cut(replies) if top == UNREADABLE else None
    mend = mend or _MENDS.get(top)
    sentences = [top_reasons(reasons), *([mend] if mend else []), *_example(replies.examples)]
    return FruitlessError(f"nothing came of the first {count} flows: {'. '.join(sentences)}")


def _mend_of_cut(replies: ReplyCounts) -> str | None:
    """How to mend replies that break off, for the role with the most unreadable replies; None if fewer than half of
    these broke off.
    """
    role, counts = max(replies.unreadable.items(), key=lambda each: each[1].total(), default=("", Counter[str]()))
    if not counts or 2 * counts[Reason.INCOMPLETE] < counts.total():
        return None
    return (
        f"Replies in role {role!r} break off: if the limit of tokens is the cause, raise llm.roles.{role}.max_tokens, "
        "or the longest context of the server"
    )


def _example(examples: Mapping[str, str]) -> list[str]:
    example = next(iter(examples.values()), None)
    return (
        []
        if example is None
        else [f"What was wrong with one of the replies: {' '.join(example.split())[:_CHARACTERS]}"]
    )
