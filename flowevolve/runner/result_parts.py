"""The parts of a result, and how each is read from the table in ``result.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any, Self, cast

from pydantic import TypeAdapter

from flowevolve._util.intervals import Interval
from flowevolve.core.artifact import Artifact
from flowevolve.core.fresh_score import FreshScore
from flowevolve.core.model import Usage
from flowevolve.core.named import Named
from flowevolve.core.pool import Candidate
from flowevolve.core.score_trust import ScoreTrust
from flowevolve.engine.report import StageReport
from flowevolve.llm.client.accounting import Totals
from flowevolve.llm.client.traffic import TrafficStats
from flowevolve.llm.scheduling.admission import LoadSummary

Table = Mapping[str, Any]
"""A table of a ``result.json``: plain data."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best confirmed candidate. ``score`` is its mean over the validation set."""

    id: str
    score: float
    components: Mapping[str, str]
    artifact: Artifact
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Other measurements of it: means over the cases of a problem."""
    name: str = ""
    """What a program's writer calls its last change; ``idea`` is its explanation. Both are empty if it gave none."""
    idea: str = ""
    interval: Interval | None = None
    """The 95 % interval of the score, by resampling examples. As the candidate was chosen by this score, the score is a
    little too high on average; `fresh` and `HeldOut` say what the candidate is worth.
    """
    fresh: FreshScore | None = None
    """What it scored on fresh examples, if some were run at the end to choose it. No earlier choice used it."""

    as_seed: bool = False
    """Whether its texts are the seed's, so that a difference between their scores is no gain."""

    def to_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "score": self.score,
            "interval": None if self.interval is None else list(self.interval),
            **({} if self.fresh is None else {"fresh": self.fresh.to_json()}),
            "metrics": dict(self.metrics),
            "characters": sum(map(len, self.components.values())),
            **{key: text for key, text in (("name", self.name), ("idea", self.idea)) if text},
            **({"as_seed": True} if self.as_seed else {}),
            "components": dict(self.components),
        }

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        interval: Interval | None = None,
        fresh: FreshScore | None = None,
        *,
        seed: Candidate | None = None,
    ) -> Self:
        """Describe a candidate. ``as_seed`` is set if it has the same texts as ``seed``."""
        # Attributes are whatever an algorithm notes; those that ship note numbers here, as `Assessment` does.
        noted = cast("Mapping[str, float]", candidate.attributes.get("metrics") or {})
        metrics = {name: value for name, value in noted.items() if _can_be_written(value)}
        artifact, named = candidate.artifact, Named.of(candidate)
        return cls(
            candidate.id,
            candidate.mean_score,
            artifact.components,
            artifact,
            metrics,
            named.name,
            named.idea,
            interval,
            fresh,
            seed is not None and artifact == seed.artifact,
        )

    @classmethod
    def read(cls, table: Table, artifact: Artifact) -> Self:
        """Read it from a table; candidates of the frontier have fewer keys."""
        fresh = table.get("fresh")
        return cls(
            table["id"],
            table["score"],
            artifact.components,
            artifact,
            table["metrics"],
            table.get("name", ""),
            table.get("idea", ""),
            read_interval(table.get("interval")),
            None if fresh is None else FreshScore.from_json(fresh),
            table.get("as_seed", False),
        )


def _can_be_written(value: object) -> bool:
    """JSON has no NaN and no infinities."""
    return not isinstance(value, float) or isfinite(value)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Mean scores on the test split, which evolution never saw."""

    examples: int
    seed_score: float
    best_score: float
    best_interval: Interval | None
    """The 95 % interval of the best score, by resampling examples. None in results of 0.1, as is the next one."""
    gain_interval: Interval | None
    """The interval of the best candidate's score minus the seed's, example by example."""
    failed: int = 0
    """How many rollouts of seed and best failed, as logged. Those without a score count as 0, or as a measured task's
    worst.
    """
    tested: str | None = None
    """A digest of what was tested, on what and with which metric (`flowevolve.tasks.identity.identity_of_test`)."""

    def to_json(self) -> dict[str, object]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def read(cls, table: Table) -> Self:
        best, gain = read_interval(table.get("best_interval")), read_interval(table.get("gain_interval"))
        return cls(
            table["examples"],
            table["seed_score"],
            table["best_score"],
            best,
            gain,
            failed=table.get("failed", 0),
            tested=table.get("tested"),
        )


@dataclass(frozen=True, slots=True)
class ModelCounts:
    """One model's part in a run. ``accepted`` counts confirmed candidates that it had a part in making."""

    totals: Totals
    accepted: int


def totals_to_json(totals: Totals) -> dict[str, object]:
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


def stage_to_json(stage: StageReport) -> dict[str, object]:
    return {
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


def read_interval(bounds: Sequence[float] | None) -> Interval | None:
    if bounds is None:
        return None
    low, high = bounds
    return (low, high)


def read_totals(table: Table) -> Totals:
    """The totals, except the latency, which is not written. Older files have fewer of them."""
    return Totals(
        table["requests"],
        table["failed"],
        table["retries"],
        Usage(table["prompt_tokens"], table["completion_tokens"], table["cached_tokens"]),
        dollars=table["cost_usd"],
        cached_calls=table.get("cached_calls", 0),
        cached_calls_tokens=table.get("cached_calls_tokens", 0),
        estimated=table.get("usage_estimated", 0),
        cut_while_thinking=table.get("cut_while_thinking", 0),
    )


def read_by_model(llm: Table) -> dict[str, ModelCounts]:
    return {
        name: ModelCounts(read_totals(counts), counts["accepted"]) for name, counts in llm.get("by_model", {}).items()
    }


def read_traffic(llm: Table) -> TrafficStats:
    """Raises: ValueError if endpoints, limits or hedging do not have their fields."""
    written = {name: llm[name] for name in TrafficStats.__slots__ if name in llm}
    return TypeAdapter(TrafficStats).validate_python(written)


def trust_to_json(trust: ScoreTrust | None) -> dict[str, object]:
    return {
        "score_trust": None if trust is None else trust.kind,
        "shared_because": None if trust is None else trust.why or None,
    }


def read_trust(table: Table) -> ScoreTrust | None:
    """None for tasks that run no programs, and in older files."""
    return ScoreTrust.of(table.get("score_trust"), table.get("shared_because"))


def read_server(table: Table | None) -> LoadSummary | None:
    if table is None:
        return None
    hits = table["prefix_hit_rate"]
    return LoadSummary(
        table["looks"],
        table["mean_running"],
        table["mean_waiting"],
        table["mean_cache_usage"],
        0.0 if hits is None else 1.0,
        hits or 0.0,
        table["restarts"],
    )
