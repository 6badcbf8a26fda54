"""What an engine reports of a run that has ended."""

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

    ``unchanged`` counts the times that what was written was what there was before; ``flow_limit`` is how many flows
    could be open in the stream at last; ``overshoot`` says by how much each limit was passed; ``held`` counts the items
    that were not worked to their end; ``error`` is what ended the run, if it failed.
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
    held: int
    error: FlowevolveError | None
