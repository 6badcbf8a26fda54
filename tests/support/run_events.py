"""Events of a small run, for whoever watches runs."""

from __future__ import annotations

import io
from collections.abc import Sequence

from prometheus_client import generate_latest
from rich.console import Console

from flowevolve.core.budget import Budget
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.llm.scheduling.scheduler import SchedulerStats
from flowevolve.telemetry.metrics import Metrics
from flowevolve.telemetry.progress import LiveTable
from tests.support.some_events import some_changes, some_event


def commit(seq: int, version: int, best: str, score: float) -> Event:
    changes = some_changes(add=best, status="confirmed", pool="main")
    return some_event(seq, "pool.commit", version=version, stage="update", best=best, best_score=score, changes=changes)


def proposed(seq: int) -> Event:
    """Work that has ended with a proposal."""
    return some_event(seq, "item.done", cost={"proposals": 1})


EVENTS = [
    some_event(0, "flow.open", flow=0),
    commit(1, 1, "c0", 0.2),
    some_event(2, "flow.close", flow=0),
    proposed(3),
    some_event(4, "item.done", outcome="discarded", reason="unchanged"),
    commit(5, 2, "c0", 0.2),
    commit(6, 3, "c2", 0.5),
    some_event(7, "item.taken", gap=2, stage="screen"),
    some_event(8, "item.done", stage="screen", outcome="discarded", reason="stale"),
    some_event(9, "run.stopping", reason="seconds"),
]


def shown_by(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def requests(in_flight: int) -> SchedulerStats:
    return SchedulerStats(16, in_flight, 0, 16, 1.0)


def drawn(events: Sequence[Event], calls: Sequence[CallRecord] = (), budget: Budget | None = None) -> str:
    """What a live table shows at the end."""
    console = Console(file=io.StringIO(), force_terminal=True, width=140)
    with LiveTable(console, budget) as progress:
        for call in calls:
            progress.call(call)
        for event in events:
            progress.event(event)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]  # a StringIO


def call(
    started: float, finished: float, error: str | None = None, *, cached: bool = False, stage: str = "screen"
) -> CallRecord:
    request, scope = ChatRequest("m", (Message("user", "x"),)), CallScope(stage, "1", None, 0, 0)
    reply = None if error else ChatReply("y", Usage(1000, 70, 1), cached=cached)
    return CallRecord("task", scope, request, reply, error, 1, started, started, finished)


def waiting_events() -> list[Event]:
    sent = [some_event(n, "item.sent", item=f"1/{n}", stage="evaluate" if n else "screen") for n in range(4)]
    return [*sent, some_event(4, "item.taken", item="1/3", stage="evaluate")]
