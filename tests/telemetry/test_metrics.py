"""Metrics for Prometheus: what they count, and what goes on after a resume."""

from __future__ import annotations

from prometheus_client import generate_latest

from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.telemetry.metrics import Metrics
from tests.support.run_events import EVENTS, shown_by
from tests.support.some_events import some_event


def test_metrics_count_items_and_calls() -> None:
    metrics = Metrics()
    scheduled = [
        some_event(10, "allocation.changed", stage="evaluate", by=1, workers=9, reason="x"),
        some_event(11, "admission.changed", limit=271, before=256, reason="x"),
        some_event(13, "server.load", running=7, waiting=1, cache_usage=None, prefix_hit_rate=0.75),
        some_event(14, "server.died", url="x", detail="y"),
        some_event(14, "item.done", cost={"rollouts": 6, "dollars": 0.25}),
        some_event(12, "evaluation.stopped", candidate="c3", reason="x", finished=3, saved=5),
    ]
    for event in [*EVENTS, *scheduled]:
        metrics.event(event)
    request = ChatRequest("m", (Message("user", "x"),))
    scope = CallScope("screen", "1", None, 0, 0)
    metrics.call(CallRecord("task", scope, request, ChatReply("y", Usage(5, 7, 4)), None, 1, 0.0, 1.0, 3.0))
    cached = ChatReply("y", Usage(5, 7, 1), cached=True)
    metrics.call(CallRecord("task", scope, request, cached, None, 0, 0.0, 1.0, 1.0))
    text = generate_latest(metrics.registry).decode()
    assert 'flowevolve_items_total{outcome="discarded",stage="screen"} 1.0' in text
    assert "flowevolve_proposals_total 1.0" in text
    assert "flowevolve_unchanged_total 1.0" in text
    assert "flowevolve_pool_version 3.0" in text
    assert 'flowevolve_candidates_total{status="confirmed"} 3.0' in text
    assert 'flowevolve_workers{stage="evaluate"} 9.0' in text
    assert "flowevolve_request_limit 271.0" in text
    assert "flowevolve_server_running_requests 7.0" in text
    assert "flowevolve_server_waiting_requests 1.0" in text
    assert "flowevolve_server_prefix_hit_ratio 0.75" in text
    assert "flowevolve_server_cache_usage" not in text
    assert "flowevolve_server_deaths_total 1.0" in text
    assert "flowevolve_evaluations_stopped_total 1.0" in text
    assert 'flowevolve_llm_tokens_total{kind="completion",role="task"} 7.0' in text
    assert 'flowevolve_llm_cached_tokens_total{role="task"} 4.0' in text
    assert "flowevolve_spent_dollars_total 0.25" in text
    assert "flowevolve_rollouts_total 6.0" in text
    assert 'flowevolve_llm_calls_total{result="ok",role="task",stage="screen"} 1.0' in text
    assert 'flowevolve_llm_calls_total{result="cached",role="task",stage="screen"} 1.0' in text
    assert 'flowevolve_llm_latency_seconds_count{role="task"} 1.0' in text


def test_after_a_resume_metrics_go_on_from_what_the_run_came_to() -> None:
    metrics = Metrics()
    metrics.event(some_event(0, "run.resumed", version=5, best="c2", best_score=0.7, flows=3))
    metrics.event(some_event(1, "flow.close", flow=0))
    text = shown_by(metrics)
    assert "flowevolve_best_score 0.7" in text
    assert "flowevolve_pool_version 5.0" in text
    assert "flowevolve_open_flows 2.0" in text


def test_what_is_not_known_has_no_metric() -> None:
    metrics = Metrics()
    metrics.event(some_event(0, "run.resumed"))
    metrics.event(some_event(1, "item.done", cost={"rollouts": 1}))
    for name in ("best_score", "request_limit", "program_slots", "spent_dollars"):
        assert name not in shown_by(metrics)
