"""Runs one algorithm in both modes with one seed on the virtual clock, and keeps its best score over time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from flowevolve._util import clock
from flowevolve.config.run import Config
from flowevolve.core.events import Event
from flowevolve.core.task import Task
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run

PROFILE, WORLD = "qwen3-8b-h100", "rules"


@dataclass(frozen=True, slots=True)
class Curve:
    """One run: its result and the best score over time, as (seconds, score)."""

    result: Result
    best: tuple[tuple[float, float], ...]
    verdicts: tuple[str, ...]
    """The verdict of every repair, in order."""

    def time_to(self, score: float) -> float | None:
        """Seconds until the best score reached ``score``; None if it never did."""
        return next((seconds for seconds, best in self.best if best >= score), None)

    def first_rise(self) -> float:
        """Seconds until the best score was above the seed's; infinite if it never was."""
        return next((seconds for seconds, best in self.best if best > self.best[0][1]), math.inf)

    def proposals_per_minute(self) -> float:
        report = self.result.report
        return report.spent.proposals / (report.wall_seconds / 60)


def evolve(config: Config, task: Task) -> Curve:
    """Run a configuration on the virtual clock."""
    best: list[tuple[float, float]] = []
    verdicts: list[str] = []

    def watch(event: Event) -> None:
        score = event.data.get("best_score")
        if event.kind == "pool.commit" and isinstance(score, int | float):
            best.append((event.time, float(score)))
        elif event.kind == "repair.judged":
            verdicts.append(str(event.data["verdict"]))

    async def main() -> Result:
        return await run(config, task=task, watchers=Watchers(events=(watch,)))

    return Curve(clock.run(main, clock="virtual"), tuple(best), tuple(verdicts))


@dataclass(frozen=True, slots=True)
class Pair:
    """The runs of both modes with one seed."""

    seed: int
    sync: Curve
    stream: Curve

    @property
    def proposals_ratio(self) -> float:
        return self.stream.proposals_per_minute() / self.sync.proposals_per_minute()

    @property
    def reached(self) -> bool:
        """Whether the stream ever reached the score that lockstep ended with."""
        return self.stream.time_to(self.sync.best[-1][1]) is not None

    @property
    def time_ratio(self) -> float:
        """The stream's time to the score that lockstep ended with, divided by lockstep's own; 2 if the stream never
        reached it.
        """
        final = self.sync.best[-1][1]
        reached, took = self.stream.time_to(final), self.sync.time_to(final)
        return 2.0 if reached is None or not took else reached / took
