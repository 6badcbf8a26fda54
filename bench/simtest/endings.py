"""What must be true when a run has ended: sums, pool and stop reason, by its report and by its events replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.simtest.books import Books
from bench.simtest.case import Case
from bench.simtest.record import Fact, Memory
from bench.simtest.tasks import Mishaps, make_case_algorithm
from flowevolve._util.errors import FlowevolveError, InputError
from flowevolve.core.budget import DIMENSIONS, Dimension, Ledger
from flowevolve.core.calls import HELD_OUT, CallRecord
from flowevolve.core.pool import Pool
from flowevolve.core.stop_reasons import CANCELLED, EXHAUSTED, FAILED, STALLED, STOPPED, TARGET_SCORE
from flowevolve.engine.engine import RunReport
from flowevolve.engine.recovery.recovery import recover
from flowevolve.runner.plan import Plan

COUNTED: Sequence[Dimension] = ("rollouts", "proposals", "evaluations")


@dataclass
class Ending:
    """A run that has come to an end by itself, or because it was asked to."""

    case: Case
    plan: Plan
    books: Books
    report: RunReport
    facts: Sequence[Fact]
    result: Mapping[str, object]
    error: FlowevolveError | None

    def told(self) -> str:
        failure = "" if self.error is None else f": {type(self.error).__name__}: {self.error}"
        return f"{self.report.stop_reason} after {self.report.wall_seconds:.3f} s, {self.report.held} held{failure}"


def check_ending(ending: Ending) -> None:
    """Note in the books what is wrong."""
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
        found["spent"] = ([getattr(books.spent, name) for name in COUNTED], [getattr(report.spent, n) for n in COUNTED])
        found["tokens"] = (books.spent.tokens, report.spent.tokens)
        found["tokens of calls"] = (books.tokens, report.spent.tokens)
    found |= _sums_of_calls(ending)
    for name, (told_of, said) in found.items():
        if told_of != said:
            books.fault("counters", f"{name}: {said} is reported, and the events say {told_of}")


def _sums_of_calls(ending: Ending) -> dict[str, tuple[object, object]]:
    """Requests and tokens, without the held-out test: by the calls that were kept, and by the result."""
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
    best, replayed = ending.plan.algorithm.best(), algorithm.best()
    if best != replayed:
        books.fault("pool", f"replayed, the best is {replayed and replayed.id}, not {best and best.id}")
    counters = state.counters
    for name, stage in ending.report.stages.items():
        if counters.stages[name] != stage.counts:
            books.fault("counters", f"{name}: replayed, {counters.stages[name]} is counted, not {stage.counts}")


def _check_reason(ending: Ending) -> None:
    """That the reason why the run stopped holds."""
    reason, report, case = ending.report.stop_reason, ending.report, ending.case
    stopping = ending.plan.config.stopping
    deeds = {act.deed for life in case.lives for act in life.acts}
    match reason:
        case _ if reason in DIMENSIONS:
            holds = any(_is_spent(ending, each) for each in DIMENSIONS if each == reason)
        case "seconds":
            limit = ending.plan.config.budget.time_limit()
            holds = limit is not None and report.wall_seconds >= limit
        case _ if reason == TARGET_SCORE:
            target = ending.plan.config.budget.target_score
            holds = target is not None and ending.books.pool.best_score >= target
        case _ if reason == STOPPED:
            holds = "stop" in deeds
        case _ if reason == CANCELLED:
            holds = "cancel" in deeds
        case _ if reason == FAILED:
            holds = ending.error is not None and _may_fail(ending, ending.error)
        case _ if reason == STALLED:
            holds = False
        case _ if reason == EXHAUSTED:  # ACE reads its examples so and so often; others have nothing to begin with
            holds = ending.plan.algorithm.name == "ace" or ending.plan.algorithm.best() is None
        case _:
            flows = {"no_improvement": stopping.no_improvement, "unevaluated": stopping.unevaluated}.get(reason)
            holds = reason == "unproductive" or (flows is not None and report.spent.proposals >= flows)
    if not holds:
        ending.books.fault("stop reason", ending.told())


def _may_fail(ending: Ending, error: FlowevolveError) -> bool:
    """Whether a run may fail with this: where something went wrong on purpose, or its budget is too small to begin."""
    return bool(ending.case.faults) or (isinstance(error, InputError) and "too small" in str(error))


def _is_spent(ending: Ending, dimension: Dimension) -> bool:
    """Whether there is no room for one more flow, and the end of the run, in what is left of a limit."""
    limit = ending.plan.config.budget.limits().get(dimension)
    if limit is None:
        return False
    if any(refused.dimension == dimension for refused in ending.books.refused):
        return True
    algorithm = ending.plan.algorithm
    share = Ledger(ending.plan.config.budget).part
    room = limit - ending.report.spent.amount(dimension)
    wanted = [algorithm.estimate(), algorithm.estimate_finish(share), algorithm.reserve_for_finish(share)]
    return room <= 0 or room < sum(each.amount(dimension) for each in wanted)


def _describe(pool: Pool) -> object:
    """All that a pool holds, in a form that can be compared. Times are rounded as in the log."""
    return (
        [(each.version, each.changes, each.cause, round(each.time, 6)) for each in pool.updates_between(0)],
        [(name, candidate, pool.status(candidate.id)) for name, candidate in pool.candidates()],
    )
