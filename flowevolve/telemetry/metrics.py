"""Metrics of a run for Prometheus, which are updated by its events and its finished LLM calls."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from flowevolve.core.calls import CallRecord
from flowevolve.core.discard_reasons import UNCHANGED
from flowevolve.core.event_kinds import (
    AllocationChanged,
    CandidateRejected,
    EvaluationStopped,
    FlowClosed,
    FlowOpened,
    ItemDone,
    ItemTaken,
    PoolCommitted,
    RunPaused,
    RunResumed,
    RunUnpaused,
)
from flowevolve.core.events import Event
from flowevolve.core.logged_changes import LoggedAdd, LoggedMove
from flowevolve.core.server_event_kinds import (
    AdmissionChanged,
    EndpointEjected,
    EndpointReturned,
    LimitsRefused,
    NodeJoined,
    NodeLost,
    ServerDied,
    ServerLooked,
)

LATENCY_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250)
"""The bounds of the buckets in seconds, from a small model's short answer to a long answer in a full batch."""

SERVER_GAUGES = {
    "running": ("running_requests", "Requests the server works on"),
    "waiting": ("waiting_requests", "Requests in the server's own queue"),
    "cache_usage": ("cache_usage_ratio", "Share of the server's KV cache that is in use"),
    "prefix_hit_rate": (
        "prefix_hit_ratio",
        "Share of prompt tokens found in the server's prefix cache since it was started",
    ),
}
"""For each field of the event ``server.load``: how the name of its gauge ends, and what the gauge means."""


class Metrics:
    """One run's metrics in a registry of their own, so that two runs in one process don't mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._items = Counter(
            "flowevolve_items", "Items that ended, by stage and outcome", ["stage", "outcome"], registry=self.registry
        )
        self._proposals = Counter("flowevolve_proposals", "New artifacts written", registry=self.registry)
        self._rollouts = Counter("flowevolve_rollouts", "Runs of a candidate on an example", registry=self.registry)
        self._unchanged = Counter("flowevolve_unchanged", "Replies that changed nothing", registry=self.registry)
        self._dollars: Counter | None = None
        """Created when something has first cost money. Otherwise models without a price would seem to be free."""
        self._gauges: dict[str, Gauge] = {}
        """The gauges whose value is known, by name."""
        self._paused = Gauge("flowevolve_paused", "Whether the run is paused", registry=self.registry)
        self._flows = Gauge("flowevolve_open_flows", "Flows open", registry=self.registry)
        self._candidates = Counter(
            "flowevolve_candidates", "Candidates that came to a status", ["status"], registry=self.registry
        )
        self._stopped = Counter("flowevolve_evaluations_stopped", "Evaluations stopped early", registry=self.registry)
        self._workers = Gauge(
            "flowevolve_workers", "Workers, once allocation has changed them", ["stage"], registry=self.registry
        )
        self._endpoint_up = Gauge(
            "flowevolve_endpoint_up", "Whether it takes requests, once it was ejected", ["endpoint"],
            registry=self.registry,
        )  # fmt: skip
        self._storms = Counter(
            "flowevolve_rate_limit_storms", "Storms of 429s, each a pause of all calls", ["backend", "model"],
            registry=self.registry,
        )  # fmt: skip
        self._deaths = Counter("flowevolve_server_deaths", "Servers of ours that died", registry=self.registry)
        self._gap = Histogram(
            "flowevolve_version_gap", "Gap of items as they are taken", ["stage"], buckets=(0, 1, 2, 4, 8, 16, 32),
            registry=self.registry,
        )  # fmt: skip
        self._calls = Counter(
            "flowevolve_llm_calls", "Finished LLM calls", ["role", "stage", "result"], registry=self.registry
        )
        self._tokens = Counter(
            "flowevolve_llm_tokens", "Tokens read (prompt) and written (completion)", ["role", "kind"],
            registry=self.registry,
        )  # fmt: skip
        self._cached_tokens = Counter(
            "flowevolve_llm_cached_tokens", "Those of the prompts that the server had in its cache", ["role"],
            registry=self.registry,
        )  # fmt: skip
        self._latency = Histogram(
            "flowevolve_llm_latency_seconds", "Last attempt of each call", ["role"], buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )  # fmt: skip

    def event(self, event: Event) -> None:
        """Update the metrics by an event. This is an event sink."""
        match event.body:
            case ItemDone(stage=stage, outcome=outcome, reason=reason, cost=cost):
                self._items.labels(stage, outcome).inc()
                self._proposals.inc(cost.proposals)
                self._rollouts.inc(cost.rollouts)
                if cost.dollars:
                    self._spend(cost.dollars)
                self._unchanged.inc(reason == UNCHANGED)
            case ItemTaken(stage=stage, gap=gap):
                self._gap.labels(stage).observe(gap)
            case FlowOpened():
                self._flows.inc()
            case FlowClosed():
                self._flows.dec()
            case RunResumed() as before:
                self._set_pool(before.version, before.best_score)
                self._flows.set(before.flows)
                self._paused.set(0)
            case RunPaused():
                self._paused.set(1)
            case RunUnpaused():
                self._paused.set(0)
            case PoolCommitted() as commit:
                self._set_pool(commit.version, commit.best_score)
                for change in commit.changes:
                    if isinstance(change, LoggedAdd | LoggedMove):
                        self._candidates.labels(change.status).inc()
            case CandidateRejected():
                self._candidates.labels("rejected").inc()
            case EvaluationStopped():
                self._stopped.inc()
            case AllocationChanged(stage=stage, workers=workers):
                self._workers.labels(stage).set(workers)
            case EndpointEjected(endpoint=endpoint):
                self._endpoint_up.labels(endpoint).set(0)
            case EndpointReturned(endpoint=endpoint):
                self._endpoint_up.labels(endpoint).set(1)
            case NodeJoined(capacity=capacity) | NodeLost(capacity=capacity):
                self._set("flowevolve_program_slots", "Programs that the nodes of a cluster run at a time", capacity)
            case LimitsRefused(backend=backend, model=model):
                self._storms.labels(backend, model).inc()
            case AdmissionChanged(limit=limit):
                meaning = "Requests that may be in flight, once admission has changed it"
                self._set("flowevolve_request_limit", meaning, limit)
            case ServerLooked() as looked:
                for field, (name, meaning) in SERVER_GAUGES.items():
                    value = getattr(looked, field)
                    if value is not None:
                        self._set(f"flowevolve_server_{name}", meaning, value)
            case ServerDied():
                self._deaths.inc()

    def call(self, record: CallRecord) -> None:
        """Update the metrics by a finished LLM call. Cached calls are counted, but add no tokens and no latency.

        This is an observer of the LLM client.
        """
        if record.cached:
            self._calls.labels(record.role, record.scope.stage, "cached").inc()
            return
        self._calls.labels(record.role, record.scope.stage, "ok" if record.error is None else "error").inc()
        self._latency.labels(record.role).observe(record.finished - record.started)
        usage = record.failed_usage if record.reply is None else record.reply.usage
        self._tokens.labels(record.role, "prompt").inc(usage.prompt_tokens)
        self._cached_tokens.labels(record.role).inc(usage.cached_tokens)
        self._tokens.labels(record.role, "completion").inc(usage.completion_tokens)

    def _set(self, name: str, meaning: str, value: float) -> None:
        """Set a gauge. It is created when its value is first known, because a gauge that is never set would show 0."""
        if name not in self._gauges:
            self._gauges[name] = Gauge(name, meaning, registry=self.registry)
        self._gauges[name].set(value)

    def _set_pool(self, version: int, best_score: float | None) -> None:
        self._set("flowevolve_pool_version", "Current pool version", version)
        if best_score is not None:
            self._set("flowevolve_best_score", "Best mean validation score", best_score)

    def _spend(self, dollars: float) -> None:
        if self._dollars is None:
            meaning = "What requests cost, of models that have a price"
            self._dollars = Counter("flowevolve_spent_dollars", meaning, registry=self.registry)
        self._dollars.inc(dollars)
