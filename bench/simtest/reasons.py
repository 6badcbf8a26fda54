"""Whether a reason to stop holds. It is judged when it is reported, because what it depends on may change until the
end.
"""

from __future__ import annotations

from collections.abc import Collection

from bench.simtest.books import Books
from bench.simtest.case import Deed
from flowevolve.config.sections import StoppingSettings
from flowevolve.core.budget import DIMENSIONS, Dimension
from flowevolve.core.stop_reasons import CANCELLED, EXHAUSTED, FAILED, STALLED, STOPPED, TARGET_SCORE, TIME
from flowevolve.engine.ledger import Ledger
from flowevolve.runner.plan import Plan

_ROUNDING = 1e-6
"""The precision of event times, in seconds."""


def holds(reason: str, plan: Plan, books: Books, deeds: Collection[Deed]) -> bool:
    """Whether a reason holds by the books as they are now. ``deeds`` are those that are done to this process."""
    budget, stopping = plan.config.budget, plan.config.stopping
    match reason:
        case _ if reason in DIMENSIONS:
            return any(_is_spent(plan, books, each) for each in DIMENSIONS if each == reason)
        case _ if reason == TIME:
            limit = None if books.bounds is None else books.bounds.limits.get("seconds")
            return limit is not None and books.time >= limit - _ROUNDING
        case _ if reason == TARGET_SCORE:
            return budget.target_score is not None and books.pool.best_score >= budget.target_score
        case _ if reason == STOPPED:
            return "stop" in deeds
        case _ if reason == CANCELLED:
            return "cancel" in deeds
        case _ if reason == FAILED:
            return True  # whether it may fail depends on the error, which the report has
        case _ if reason == STALLED:
            return False
        case _ if reason == EXHAUSTED:
            return plan.algorithm.name == "ace"  # it reads its examples a set number of times
        case "unproductive":
            return True
        case _:
            return least_proposals(reason, stopping) is not None


def least_proposals(reason: str, stopping: StoppingSettings) -> int | None:
    """How many proposals a run must have made to stop for this reason; None if that is no condition. The caller
    compares at the end, when the number of proposals is known.
    """
    return {"no_improvement": stopping.no_improvement, "unevaluated": stopping.unevaluated}.get(reason)


def _is_spent(plan: Plan, books: Books, dimension: Dimension) -> bool:
    """Whether what is left of a limit has no room for one more flow and for the end of the run."""
    limit = None if books.bounds is None else books.bounds.limits.get(dimension)
    if limit is None:
        return False
    spending, algorithm = books.spending, plan.algorithm
    if any(each.dimension == dimension and each.needed > limit for each in spending.refused):
        return True
    share_of = Ledger(plan.config.budget.raised(books.raised)).share_of
    room = limit - spending.amount(dimension)
    wanted = [algorithm.estimate(), algorithm.estimate_finish(share_of), algorithm.reserve_for_finish(share_of)]
    return room <= 0 or room < sum(each.amount(dimension) for each in wanted)
