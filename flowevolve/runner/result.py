"""The result of a run: what Python callers get and ``result.json`` holds (contract: docs/reference/result.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from flowevolve._util.intervals import Interval
from flowevolve.core.artifact import Artifact
from flowevolve.engine.engine import RunReport
from flowevolve.llm.client.accounting import Totals
from flowevolve.llm.client.traffic import TrafficStats
from flowevolve.llm.scheduling.admission import LoadSummary

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Best:
    """The best confirmed candidate. ``score`` is its mean over the validation set."""

    id: str
    score: float
    components: Mapping[str, str]
    artifact: Artifact
    metrics: Mapping[str, float] = field(default_factory=dict)
    """What else was measured of it: means over the cases of a problem."""
    interval: Interval | None = None
    """The 95 % interval of the score, by resampling examples. As the candidate was chosen by this score, it is a little
    too high on average; what it is worth is said by `HeldOut`.
    """


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Mean scores on the test split, which evolution never saw."""

    examples: int
    seed_score: float
    best_score: float
    best_interval: Interval
    """95 %, by resampling examples."""
    gain_interval: Interval
    """That of the best candidate's score less the seed's, example by example."""

    def to_json(self) -> dict[str, object]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class ModelCounts:
    """One model's part in a run. ``accepted`` counts confirmed candidates that it had a part in making."""

    totals: Totals
    accepted: int


@dataclass(frozen=True, slots=True)
class Result:
    """One finished run."""

    algorithm: str
    mode: str
    task: str
    backend: str
    simulated: bool
    seed_score: float | None
    best: Best | None
    report: RunReport
    llm: Totals
    mean_in_flight: float
    cancelled: int = 0
    """Requests cancelled on the wire."""
    held_out: HeldOut | None = None
    frontier: Sequence[Best] = ()
    """The candidates that nobody is better than in everything, as the algorithm has it."""
    server: LoadSummary | None = None
    """The server's own load, where the admission policy looked at it."""
    by_model: Mapping[str, ModelCounts] = field(default_factory=dict)
    traffic: TrafficStats = field(default_factory=TrafficStats)
    """Endpoints, rate limits and hedging."""
    extra: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The contents of ``result.json``."""
        report, stages = self.report, self.report.stages
        return {
            "schema": SCHEMA,
            "algorithm": self.algorithm,
            "mode": self.mode,
            "task": self.task,
            "backend": self.backend,
            "simulated": self.simulated,
            "stop_reason": report.stop_reason,
            "error": None if report.error is None else str(report.error),
            "wall_seconds": round(report.wall_seconds, 3),
            "seed_score": self.seed_score,
            "best": None
            if self.best is None
            else {
                "id": self.best.id,
                "score": self.best.score,
                "interval": None if self.best.interval is None else list(self.best.interval),
                "metrics": dict(self.best.metrics),
                "characters": sum(map(len, self.best.components.values())),
                "components": dict(self.best.components),
            },
            "frontier": [{"id": each.id, "score": each.score, "metrics": dict(each.metrics)} for each in self.frontier],
            "held_out": None if self.held_out is None else self.held_out.to_json(),
            "pool_version": report.pool.version,
            "proposals": report.spent.proposals,
            "accepted": report.accepted,
            "rollouts": report.spent.rollouts,
            "overshoot": report.overshoot,
            "flow_limit": None if report.flow_limit is None else asdict(report.flow_limit),
            "held_items": report.held,
            "llm": {
                **_calls(self.llm),
                "cancelled": self.cancelled,
                "mean_in_flight": round(self.mean_in_flight, 3),
                "by_model": {
                    name: {**_calls(counts.totals), "accepted": counts.accepted}
                    for name, counts in self.by_model.items()
                },
                **asdict(self.traffic),
            },
            "server": None if self.server is None else self.server.to_json(),
            "staleness": asdict(report.staleness),
            "speculation": asdict(report.speculation),
            "racing": asdict(report.racing),
            "replies": report.replies.to_json(),
            "stages": {
                name: {
                    "items_in": stage.counts.items_in,
                    "items_out": stage.counts.items_out,
                    "discarded": stage.counts.discarded,
                    "discard_reasons": dict(stage.counts.reasons),
                    "rollouts": stage.counts.rollouts,
                    "tokens": stage.counts.tokens,
                    "busy_seconds": round(stage.counts.busy_seconds, 3),
                    "wait_seconds": round(stage.queue.wait_seconds, 3) if stage.queue is not None else 0.0,
                    "workers": stage.workers,
                }
                for name, stage in stages.items()
            },
        }


def _calls(totals: Totals) -> dict[str, object]:
    return {
        "requests": totals.requests,
        "failed": totals.failed,
        "retries": totals.retries,
        "prompt_tokens": totals.usage.prompt_tokens,
        "completion_tokens": totals.usage.completion_tokens,
        "cached_tokens": totals.usage.cached_tokens,
        "usage_estimated": totals.estimated,
        "cut_while_thinking": totals.cut_while_thinking,
        "cost_usd": totals.dollars,
        "cached_calls": totals.cached_calls,
        "cached_calls_tokens": totals.cached_calls_tokens,
    }
