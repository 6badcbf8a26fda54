"""Decisions on how many workers, requests and flows there are, and what became of the servers."""

from __future__ import annotations

from collections.abc import Iterator

from flowevolve.core.event_kinds import AllocationChanged, FlowLimitChanged, RunPaused, RunUnpaused, WidthChanged
from flowevolve.core.events import Event
from flowevolve.core.server_event_kinds import (
    AdmissionChanged,
    EndpointEjected,
    EndpointReturned,
    LimitsRefused,
    NodeAwaited,
    NodeJoined,
    NodeLost,
    NodeRefused,
    ServerEvent,
)
from flowevolve.page.tables.run import MoveRow


def decisions(event: Event) -> Iterator[MoveRow]:
    """The row of an event that is a decision."""
    match event.body:
        case AllocationChanged(stage=stage, by=by, workers=workers, reason=reason):
            yield _move(event, "workers", stage, workers - by, workers, reason)
        case AdmissionChanged() as admission:
            yield MoveRow(
                event.seq,
                event.time,
                "requests",
                None,
                admission.before,
                admission.limit,
                admission.reason,
                admission.in_flight,
                admission.waiting,
                admission.server_running,
                admission.server_waiting,
            )
        case FlowLimitChanged(flows=flows, reason=reason):
            yield _move(event, "flows", None, None, flows, reason)
        case WidthChanged(width=width, before=before):
            yield _move(event, "width", None, before, width, "")
        case EndpointEjected(endpoint=endpoint, reason=reason):
            yield _move(event, "endpoint", endpoint, 1, 0, reason)
        case EndpointReturned(endpoint=endpoint, seconds=seconds):
            yield _move(event, "endpoint", endpoint, 0, 1, f"it was out for {seconds:g} s")
        case LimitsRefused() as refused:
            said = f"{refused.model}: refused for a rate limit; a pause of {refused.pause_seconds:g} s"
            yield _move(event, "limits", refused.backend, None, refused.requests_per_minute, said)
        case NodeJoined(node=node, slots=slots, capacity=capacity):
            yield _move(event, "node", node, capacity - slots, capacity, "it joined")
        case NodeLost(node=node, reason=reason, capacity=capacity):
            yield _move(event, "node", node, None, capacity, reason)
        case NodeAwaited(reason=reason, seconds=seconds):
            yield _move(event, "node", None, None, None, f"{reason}; waiting for {seconds:g} s at most")
        case NodeRefused(reason=reason):
            yield _move(event, "node", None, None, None, reason)
        case ServerEvent(url=url, detail=detail):
            yield _move(event, "server", url, None, None, detail)
        case RunPaused():
            yield _move(event, "pause", None, 0, 1, "paused")
        case RunUnpaused():
            yield _move(event, "pause", None, 1, 0, "goes on")


def _move(
    event: Event, kind: str, subject: str | None, before: float | None, after: float | None, reason: str
) -> MoveRow:
    return MoveRow(event.seq, event.time, kind, subject, before, after, reason, None, None, None, None)
