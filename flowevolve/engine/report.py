"""An engine's report on a run that has ended."""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve._util.errors import FlowevolveError
from flowevolve.core.budget import Cost
from flowevolve.core.policies import FlowLimit
from flowevolve.core.pool import Pool
from flowevolve.core.stop_reasons import StopReason
from flowevolve.engine.counters import RacingCounts, ReplyCounts, SpeculationCounts, StageCounts, StalenessCounts
from flowevolve.engine.queue import QueueStats


@dataclass(frozen=True, slots=True)
class StageReport:
    """What one stage did in a run; ``queue`` is None in lockstep, which has no queues."""

    counts: StageCounts
    queue: QueueStats | None
    workers: int


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did, apart from its LLM calls.

    ``unchanged`` counts how often a text that was written was the same as before; ``flow_limit`` is how many flows
    could be open in the stream at the end; ``overshoot`` says by how much each limit was exceeded; ``held_at`` counts
    the items whose work was not completed, by the stage that they were at; ``error`` is the error that ended the run,
    if it failed.
    """

    stop_reason: StopReason
    wall_seconds: float
    pool: Pool
    spent: Cost
    overshoot: dict[str, float]
    unchanged: int
    accepted: int
    flow_limit: FlowLimit | None
    staleness: StalenessCounts
    speculation: SpeculationCounts
    racing: RacingCounts
    replies: ReplyCounts
    stages: dict[str, StageReport]
    held_at: dict[str, int]
    error: FlowevolveError | None

    @property
    def held(self) -> int:
        """How many items' work was not completed."""
        return sum(self.held_at.values())
