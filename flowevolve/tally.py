"""What a run counts for its report. What init and finish do themselves is no stage's."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.budget import Cost
from flowevolve.counts import RacingCounts, SpeculationCounts, StageCounts, StalenessCounts
from flowevolve.pool import Add, Change, Move


class Tally:
    """Facts for reports; nothing decides by them."""

    def __init__(self, stages: Sequence[str]) -> None:
        self.stages = {stage: StageCounts() for stage in stages}
        self.staleness = StalenessCounts()
        self.speculation = SpeculationCounts()
        self.racing = RacingCounts()
        self.accepted = 0

    def worked(self, stage: str, seconds: float) -> None:
        if stage in self.stages:
            self.stages[stage].busy_seconds += seconds

    def sent(self, stage: str) -> None:
        if stage in self.stages:
            self.stages[stage].items_out += 1

    def settled(self, stage: str, reason: str, *, discarded: bool) -> None:
        counts = self.stages.get(stage)
        if counts is None:
            return
        if discarded:
            counts.discarded += 1
            counts.reasons[reason] += 1
        else:
            counts.consumed += 1

    def spent(self, stage: str, cost: Cost) -> None:
        counts = self.stages.get(stage)
        if counts is not None:
            counts.rollouts += cost.rollouts
            counts.tokens += cost.tokens

    def saved(self, stage: str, rollouts: int) -> None:
        self.racing.stopped += 1
        self.racing.rollouts_saved += rollouts
        counts = self.stages.get(stage)
        if counts is not None and counts.rollouts:
            self.racing.tokens_saved += round(rollouts * counts.tokens / counts.rollouts)

    def committed(self, changes: Sequence[Change]) -> None:
        for change in changes:
            match change:
                case Add(candidate=candidate, status="confirmed"):
                    self.accepted += candidate.operator != "seed"
                case Add(status="speculative"):
                    self.speculation.released += 1
                case Move(status="confirmed"):
                    self.accepted += 1
                    self.speculation.confirmed += 1
                case Move(status="revoked"):
                    self.speculation.revoked += 1
                case _:
                    pass
