"""What the result of a run that has ended adds to its journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from flowevolve._util.intervals import Interval
from flowevolve.core.stop_reasons import StopReason
from flowevolve.page.projection.curve import Estimate
from flowevolve.page.projection.projection import Projection
from flowevolve.page.tables.row import Row
from flowevolve.page.tables.run import StageRow


@dataclass(frozen=True, slots=True)
class Ended:
    """The part of a ``result.json`` that the tables need."""

    reason: StopReason
    error: str | None
    seconds: float
    proposals: int
    best: str | None
    best_score: float | None
    interval: Interval | None
    seed_score: float | None
    held_out: tuple[Estimate, Estimate] | None
    """The estimates of the seed and of the best."""
    workers: Mapping[str, int]
    """The number of workers, by stage."""

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> Self:
        best = result["best"] or {}
        return cls(
            StopReason(result["stop_reason"]),
            result["error"],
            result["wall_seconds"],
            result["proposals"],
            best.get("id"),
            best.get("score"),
            _interval(best.get("interval")),
            result["seed_score"],
            _held_out(result.get("held_out")),
            {name: stage["workers"] for name, stage in result["stages"].items() if stage.get("workers") is not None},
        )

    def rows(self, projection: Projection) -> Iterator[Row]:
        """The rows that it changes."""
        if projection.start is not None:
            for place, name in enumerate(projection.start.stages):
                yield StageRow(name, place, self.workers.get(name))
        seed, curve = projection.candidates.seed, projection.curve
        if self.held_out is None or seed is None or self.best is None or curve.best is None or curve.first is None:
            return
        of_seed, of_best = self.held_out
        scores = {seed: of_seed.score, self.best: of_best.score}
        yield from projection.candidates.held_out(scores)
        last = next(curve.last(self.seconds))
        yield curve.held_out(seed, of_seed, curve.first)
        if self.best != seed:
            yield curve.held_out(self.best, of_best, last)


def _held_out(table: Mapping[str, Any] | None) -> tuple[Estimate, Estimate] | None:
    if table is None:
        return None
    examples = table["examples"]
    best = Estimate(table["best_score"], _interval(table.get("best_interval")), examples)
    return Estimate(table["seed_score"], None, examples), best


def _interval(bounds: list[float] | None) -> Interval | None:
    return None if bounds is None else (bounds[0], bounds[1])
