"""What a person or Prometheus sees of a run agrees with its events."""

from __future__ import annotations

import io
import logging

import pytest
from prometheus_client import generate_latest
from rich.console import Console

from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.telemetry.logs import configure_logs, log_event
from flowevolve.telemetry.metrics import Metrics
from flowevolve.telemetry.progress import Lines, LiveTable, ProgressFigures
from tests.support.some_events import some_changes, some_event


def commit(seq: int, version: int, best: str, score: float) -> Event:
    changes = some_changes(add=best, status="confirmed", pool="main")
    return some_event(seq, "pool.commit", version=version, stage="update", best=best, best_score=score, changes=changes)


def proposed(seq: int, operator: str) -> Event:
    return some_event(seq, "candidate.proposed", operator=operator)


EVENTS = [
    some_event(0, "flow.open", flow=0),
    commit(1, 1, "c0", 0.2),
    some_event(2, "flow.close", flow=0),
    proposed(3, "reflect"),
    proposed(4, "repair"),
    commit(5, 2, "c0", 0.2),
    commit(6, 3, "c2", 0.5),
    some_event(7, "item.taken", gap=2, stage="screen"),
    some_event(8, "item.done", stage="screen", outcome="discarded", reason="stale"),
    some_event(9, "run.stopping", reason="seconds"),
]


def test_the_tally_adds_up() -> None:
    figures = ProgressFigures()
    for event in EVENTS:
        figures.take(event)
    assert (figures.proposals, figures.accepted, figures.version, figures.stale, figures.open_flows) == (1, 2, 3, 1, 0)
    assert (figures.seed_score, figures.best_score, figures.best, figures.stopping) == (0.2, 0.5, "c2", "seconds")


def test_plain_lines_tell_what_is_new() -> None:
    lines: list[str] = []
    with Lines(lines.append) as progress:
        for event in EVENTS:
            progress.event(event)
    assert [line.split("s  ")[1].split()[0] for line in lines] == ["best", "best", "stopping:"]


def test_the_live_table_draws() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with LiveTable(console, "run") as progress:
        for event in EVENTS:
            progress.event(event)
    output = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert "0.5000 (c2)" in output


def test_metrics_count_items_and_calls() -> None:
    metrics = Metrics()
    scheduled = [
        some_event(10, "allocation.changed", stage="evaluate", by=1, workers=9, reason="x"),
        some_event(11, "admission.changed", limit=271, before=256, reason="x"),
        some_event(13, "server.load", running=7, waiting=1, cache_usage=None, prefix_hit_rate=0.75),
        some_event(14, "server.died", url="x", detail="y"),
        some_event(12, "evaluation.stopped", candidate="c3", reason="x", finished=3, saved=5),
    ]
    for event in [*EVENTS, *scheduled]:
        metrics.event(event)
    request = ChatRequest("m", (Message("user", "x"),))
    scope = CallScope("screen", "1", None, 0, 0)
    metrics.call(CallRecord("task", scope, request, ChatReply("y", Usage(5, 7, 1)), None, 1, 0.0, 1.0, 3.0))
    cached = ChatReply("y", Usage(5, 7, 1), cached=True)
    metrics.call(CallRecord("task", scope, request, cached, None, 0, 0.0, 1.0, 1.0))
    text = generate_latest(metrics.registry).decode()
    assert 'flowevolve_items_total{outcome="discarded",stage="screen"} 1.0' in text
    assert "flowevolve_pool_version 3.0" in text
    assert 'flowevolve_candidates_total{status="confirmed"} 3.0' in text
    assert 'flowevolve_workers{stage="evaluate"} 9.0' in text
    assert "flowevolve_request_limit 271.0" in text
    assert "flowevolve_server_running 7.0" in text
    assert "flowevolve_server_waiting 1.0" in text
    assert "flowevolve_server_prefix_hit_rate 0.75" in text
    assert "flowevolve_server_cache_usage" not in text
    assert "flowevolve_server_deaths_total 1.0" in text
    assert "flowevolve_evaluations_stopped_total 1.0" in text
    assert 'flowevolve_llm_tokens_total{kind="completion",role="task"} 7.0' in text
    assert 'flowevolve_llm_calls_total{result="ok",role="task",stage="screen"} 1.0' in text
    assert 'flowevolve_llm_calls_total{result="cached",role="task",stage="screen"} 1.0' in text
    assert 'flowevolve_llm_latency_seconds_count{role="task"} 1.0' in text


@pytest.mark.parametrize(
    ("kind", "shown"),
    [("run.failed", True), ("server.gave_up", True), ("run.start", False), ("item.sent", False)],
)
def test_only_what_a_person_should_notice_is_logged(kind: str, shown: bool, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(logging.WARNING)
    log_event(some_event(1, kind))
    assert (kind in capsys.readouterr().err) == shown


def test_copies_and_what_is_evolved_beside_count_as_neither_proposed_nor_accepted() -> None:
    figures = ProgressFigures()
    figures.take(commit(0, 1, "c0", 0.2))
    for seq, operator in enumerate(("migrate", "meta", "seed", "explore"), 1):
        figures.take(proposed(seq, operator))
    for seq, (operator, pool) in enumerate(
        (("migrate", "main"), ("meta", "prompts"), ("seed", "main"), ("explore", "main")), 5
    ):
        changes = some_changes(add="c1", status="confirmed", operator=operator, pool=pool)
        figures.take(some_event(seq, "pool.commit", version=seq, stage="update", changes=changes, best_score=0.5))
    assert (figures.proposals, figures.accepted) == (1, 1)
