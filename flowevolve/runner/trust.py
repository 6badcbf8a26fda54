"""Whether the programs of a run could forge their scores: found out as it begins, and kept by what goes on with it."""

from __future__ import annotations

from flowevolve._util.logger import logger
from flowevolve.core.event_kinds import RunStarted
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.core.task import Task, TellsTrust


async def find_trust(task: Task, before: ScoreTrust | None) -> ScoreTrust | None:
    """As it was ``before``, or as the task finds out; None of a task that runs no programs."""
    if not isinstance(task, TellsTrust):
        return None
    trust = await task.find_trust(before)
    if trust.kind == "shared":
        logger().warning("scores.shared", why=trust.why)
    return trust


def earlier_trust(start: RunStarted) -> ScoreTrust:
    """What a run that began so had found; it is gone on with, and replayed, in the same way."""
    known = ScoreTrust.of(start.score_trust, start.shared_because)
    return known or ScoreTrust("shared", "a version began the run that had no other way")
