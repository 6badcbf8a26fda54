"""Whether the programs of a run could forge their scores: found out as it begins, and kept when it is resumed or
replayed.
"""

from __future__ import annotations

from flowevolve._util.logger import logger
from flowevolve.core.event_kinds import RunStarted
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.core.task import Task, TellsTrust


async def find_trust(task: Task, before: ScoreTrust | None) -> ScoreTrust | None:
    """The score trust as it was ``before``, or else as the task finds out; None for a task that runs no programs."""
    if not isinstance(task, TellsTrust):
        return None
    trust = await task.find_trust(before)
    if trust.kind == "shared":
        logger().warning("scores.shared", why=trust.why)
    return trust


def earlier_trust(start: RunStarted) -> ScoreTrust:
    """What the run that began with ``start`` had found. It stays so when the run is resumed or replayed."""
    known = ScoreTrust.of(start.score_trust, start.shared_because)
    return known or ScoreTrust("shared", "the run was begun by a version of flowevolve that had no other way")
