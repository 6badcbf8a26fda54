"""The best score over time, tokens, calls and dollars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from flowevolve._util.intervals import Interval, mean_interval
from flowevolve._util.json_types import JSON
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import PoolCommitted
from flowevolve.core.events import Event
from flowevolve.page.projection.candidates import Candidates
from flowevolve.page.projection.spent import Spent
from flowevolve.page.tables.candidates import CurveRow

LAST = -1
"""What the last point of the curve has in place of a version."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean over some examples, and its 95 % interval."""

    score: float
    interval: Interval | None
    examples: int


class Curve:
    """The rows of the curve."""

    def __init__(self, candidates: Candidates, spent: Spent) -> None:
        self._candidates = candidates
        self._spent = spent
        self._version = 0
        self.first: CurveRow | None = None
        """The first one."""
        self.best: CurveRow | None = None
        """The last step of the best validation score."""

    def event(self, event: Event) -> Iterator[CurveRow]:
        match event.body:
            case PoolCommitted(version=version, best=best, best_score=score):
                self._version = version
                last = None if self.best is None else (self.best.candidate, self.best.score)
                if best is not None and score is not None and (best, score) != last:
                    self.best = self._step(event.time, version, best, score)
                    self.first = self.first or self.best
                    yield self.best
            case OwnEvent(kind="winner.chosen", data=data):
                yield from self._fresh(event.time, data)

    def last(self, seconds: float) -> Iterator[CurveRow]:
        """The point up to which the curve continues, when the run has lasted ``seconds``."""
        if self.best is not None:
            spent = self._spent
            yield replace(
                self.best, version=LAST, seconds=seconds, calls=spent.calls, tokens=spent.tokens, cost=spent.cost
            )

    def held_out(self, candidate: str, estimate: Estimate, at: CurveRow) -> CurveRow:
        """What a candidate scored on the test examples, at the time of another point."""
        low, high = estimate.interval or (None, None)
        return replace(
            at,
            series="held_out",
            candidate=candidate,
            score=estimate.score,
            low=low,
            high=high,
            examples=estimate.examples,
        )

    def _step(self, seconds: float, version: int, best: str, score: float) -> CurveRow:
        scores = list(self._candidates.scores(best).values())
        estimate = Estimate(score, mean_interval(scores) if scores else None, len(scores))
        return self._row("validation", version, seconds, best, estimate)

    def _fresh(self, seconds: float, data: Mapping[str, JSON]) -> Iterator[CurveRow]:
        match data:
            case {"candidate": str(candidate), "score": int() | float() as score, "examples": int(examples)}:
                estimate = Estimate(score, _interval(data.get("interval")), examples)
                yield self._row("fresh", self._version, seconds, candidate, estimate)

    def _row(self, series: str, version: int, seconds: float, candidate: str, estimate: Estimate) -> CurveRow:
        spent, (low, high) = self._spent, estimate.interval or (None, None)
        return CurveRow(
            series,
            version,
            seconds,
            spent.calls,
            spent.tokens,
            spent.cost,
            candidate,
            estimate.score,
            low,
            high,
            estimate.examples,
        )


def _interval(bounds: JSON) -> Interval | None:
    match bounds:
        case [int() | float() as low, int() | float() as high]:
            return (low, high)
    return None
