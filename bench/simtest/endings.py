"""What must be true when a run has ended: its sums, pool and stop reason agree with its report and with its events
replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.simtest.books import Books
from bench.simtest.case import Case
from bench.simtest.reasons import least_proposals
from bench.simtest.record import Fact, Memory
from bench.simtest.tasks import Mishaps, make_case_algorithm
from flowevolve._util.errors import FlowevolveError, InputError
from flowevolve.core.budget import Dimension
from flowevolve.core.calls import HELD_OUT, CallRecord
from flowevolve.core.pool import Pool
from flowevolve.core.stop_reasons import FAILED
from flowevolve.engine.recovery.recovery import recover
from flowevolve.engine.report import RunReport
from flowevolve.runner.plan import Plan

COUNTED: Sequence[Dimension] = ("rollouts", "proposals", "evaluations")


@dataclass
class Ending:
    """A run that has ended by itself, or because it was asked to."""

    case: Case
    life: int
    plan: Plan
    books: Books
    report: RunReport
    facts: Sequence[Fact]
    result: Mapping[str, object]
    error: FlowevolveError | None

    @property
    def held_out_failed(self) -> bool:
        """Whether the run itself ended well, and the held-out test after it failed. Such a run can be resumed."""
        return self.error is not None and self.report.error is None

    def told(self) -> str:
        failure = "" if self.error is None else f": {type(self.error).__name__}: {self.error}"
        return f"{self.report.stop_reason} after {self.report.wall_seconds:.3f} s, {self.report.held} held{failure}"


def check_ending(ending: Ending) -> None:
    """Add whatever is wrong to the books."""
    _check_budget(ending)
    _check_sums(ending)
    _check_pool(ending)
    _check_reason(ending)


def _check_budget(ending: Ending) -> None:
    over = {name: amount for name, amount in ending.report.overshoot.items() if name in COUNTED}
    if over:
        ending.books.fault("budget", f"at the end {over} too much is spent")


def _check_sums(ending: Ending) -> None:
    books, report = ending.books, ending.report
    found: dict[str, tuple[object, object]] = {
        "accepted": (books.pool.accepted, report.accepted),
        "held": (len(books.live), report.held),
        "version": (books.pool.version, report.pool.version),
    }
    for name, stage in report.stages.items():
        told, counted = books.stages.get(name), stage.counts
        if told is not None:
            sums = (told.taken, told.consumed, told.discarded, told.gaps, told.rollouts, told.tokens)
            counts = (counted.items_in, counted.consumed, counted.discarded, counted.gaps, counted.rollouts)
            found[name] = (sums, (*counts, counted.tokens))
    if not report.held:
        found["spent"] = (
            [getattr(books.spending.spent, name) for name in COUNTED],
            [getattr(report.spent, n) for n in COUNTED],
        )
        found["tokens"] = (books.spending.spent.tokens, report.spent.tokens)
        found["tokens of calls"] = (books.spending.tokens, report.spent.tokens)
    found |= _sums_of_calls(ending)
    for name, (told_of, said) in found.items():
        if told_of != said:
            books.fault("counters", f"{name}: {said} is reported, and the events say {told_of}")


def _sums_of_calls(ending: Ending) -> dict[str, tuple[object, object]]:
    """Requests and tokens, without those of the held-out test: by the calls that were kept, and by the result. If that
    test failed, there is no result.
    """
    if ending.held_out_failed:
        return {"result": ({}, ending.result)}
    sent = [
        fact
        for fact in ending.facts
        if isinstance(fact, CallRecord) and not fact.cached and fact.scope.stage != HELD_OUT
    ]
    usages = [call.failed_usage if call.reply is None else call.reply.usage for call in sent]
    tokens = sum(usage.prompt_tokens for usage in usages), sum(usage.completion_tokens for usage in usages)
    match ending.result:
        case {"llm": {"requests": requests, "prompt_tokens": prompt, "completion_tokens": completion}}:
            return {"requests": (len(sent), requests), "tokens in the result": (tokens, (prompt, completion))}
        case _:
            return {"result": ("one that was written", ending.result)}


def _check_pool(ending: Ending) -> None:
    books, pool = ending.books, ending.report.pool
    for name, status in books.pool.statuses.items():
        if name not in pool or pool.status(name) != status:
            books.fault("pool", f"candidate {name} is {status} by the events, and not in the pool")
    for name, scores in books.pool.scores.items():
        if dict(pool[name].scores) != dict(scores):
            books.fault("pool", f"candidate {name} has the scores {dict(pool[name].scores)}, not {dict(scores)}")
    algorithm = make_case_algorithm(ending.plan.config, ending.plan.task, Mishaps({}, 0))
    state = recover(algorithm, algorithm.graph(), Memory(ending.facts))
    if _describe(state.pool.pool) != _describe(pool):
        books.fault("pool", "replayed, the events make another pool")
    vetoed = {name for name, stands in books.vetoes.items() if stands}
    found = {name for name in books.vetoes if pool.vetoed(name)}
    if not vetoed == found == set(books.pool.vetoed):
        books.fault(
            "acts", f"{sorted(vetoed)} are to be vetoed, {sorted(found)} are, {sorted(books.pool.vetoed)} by the log"
        )
    if len(state.acts.comments) != books.comments:
        books.fault("acts", f"{len(state.acts.comments)} comments are left of {books.comments}")
    best, replayed = ending.plan.algorithm.best(), algorithm.best()
    if best != replayed:
        books.fault("pool", f"replayed, the best is {replayed and replayed.id}, not {best and best.id}")
    counters = state.counters
    for name, stage in ending.report.stages.items():
        if counters.stages[name] != stage.counts:
            books.fault("counters", f"{name}: replayed, {counters.stages[name]} is counted, not {stage.counts}")


def _check_reason(ending: Ending) -> None:
    """Check that the reason why the run stopped is one that it had reported, which was judged then; and check what is
    only known now.
    """
    reason = ending.report.stop_reason
    least = least_proposals(reason, ending.plan.config.stopping) or 0
    too_few = ending.report.spent.proposals < least
    failed = reason == FAILED or ending.held_out_failed
    if reason not in ending.books.said or too_few or (failed and not _may_fail(ending)):
        ending.books.fault("stop reason", ending.told())


def _may_fail(ending: Ending) -> bool:
    """Whether a run may fail with this error: something went wrong on purpose, or its budget is too small to begin.

    The faults of an earlier process may have made the seed fail, and a seed that was found to fail stays so.
    """
    error = ending.error
    of_the_beginning = isinstance(error, InputError)
    lives = range(ending.life + 1) if of_the_beginning else [ending.life]
    too_small = of_the_beginning and "too small" in str(error)
    return error is not None and (too_small or any(map(ending.case.faults_of, lives)))


def _describe(pool: Pool) -> object:
    """All contents of a pool in a form that can be compared. Times are rounded as in the log."""
    return (
        [(each.version, each.changes, each.cause, round(each.time, 6)) for each in pool.updates_between(0)],
        [(name, candidate, pool.status(candidate.id)) for name, candidate in pool.candidates()],
    )
