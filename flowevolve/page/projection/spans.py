"""The work on items, from sending to end, and which worker of the stage did it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush

from flowevolve.core.event_body import EventBody
from flowevolve.core.event_kinds import (
    CandidateProposed,
    FlowOpened,
    ItemDone,
    ItemHeld,
    ItemSent,
    ItemsGathered,
    ItemTaken,
)
from flowevolve.core.events import Event
from flowevolve.core.item_ids import ItemId, flow_of, parent_and_number, ticket_id
from flowevolve.page.tables.work import CallRow, SpanRow


class Spans:
    """The rows of work. Rows of work that has ended are not kept."""

    def __init__(self) -> None:
        self._open: dict[str, SpanRow] = {}
        self._made: set[str] = set()
        """The items in whose work a candidate was proposed, and those that were made from them."""
        self._free: dict[str, list[int]] = defaultdict(list)
        """The numbers of the idle workers of each stage, a heap each."""
        self._most: dict[str, int] = defaultdict(int)

    def event(self, event: Event) -> Iterator[SpanRow]:
        match event.body:
            case FlowOpened(flow=flow, stage=stage, phase=phase):
                sent = _sent(ticket_id(flow), stage, None, event.time)
                yield self._keep(self._begin(sent, event.time) if phase else sent)
            case ItemSent(item=item, source=source, stage=stage):
                yield self._keep(self._inherit(_sent(item, stage, source, event.time)))
            case ItemTaken(item=item, stage=stage, gap=gap, judged=judged):
                span = self._open.get(item) or _sent(item, stage, None, event.time)
                yield self._keep(replace(self._begin(span, event.time), gap=gap, judged=judged))
            case ItemsGathered(items=items):
                for item in items:
                    if item in self._open:
                        yield self._keep(replace(self._open[item], head=items[0]))
            case ItemDone(item=item) as done:
                yield self._end(item, done, event.time)
            case ItemHeld(item=item, stage=stage):
                span = self._open.get(item) or _sent(item, stage, None, event.time)
                self._release(span)
                yield self._keep(replace(span, state="held", taken=None, worker=None))
            case body:
                yield from self._about(body, event)

    def call(self, call: CallRow) -> Iterator[SpanRow]:
        """A call names the candidate that the work is about."""
        span = self._open.get(call.item)
        if span is not None and call.candidate is not None and call.stage == span.stage and span.candidate is None:
            yield self._keep(replace(span, candidate=call.candidate))

    def _about(self, body: EventBody, event: Event) -> Iterator[SpanRow]:
        """An event of a stage may name the candidate that its work made or is about."""
        span = self._open.get(str(event.data.get("item")))
        candidate = event.data.get("candidate")
        if span is None or not isinstance(candidate, str):
            return
        if isinstance(body, CandidateProposed):
            self._made.add(span.item)
        elif span.item in self._made or event.kind in ("reply.unparsable", "reply.partly_read"):
            return
        if span.candidate != candidate:
            yield self._keep(replace(span, candidate=candidate))

    def candidate_of(self, item: str) -> str | None:
        """The candidate that the open work on an item is about, as far as that is known."""
        span = self._open.get(item)
        return None if span is None else span.candidate

    def _inherit(self, span: SpanRow) -> SpanRow:
        """An item that was made from one in whose work a candidate was proposed is about that candidate, too."""
        parent, _ = parent_and_number(ItemId(span.item))
        if parent not in self._made or parent not in self._open:
            return span
        self._made.add(span.item)
        return replace(span, candidate=self._open[parent].candidate)

    def _keep(self, span: SpanRow) -> SpanRow:
        self._open[span.item] = span
        return span

    def _begin(self, span: SpanRow, time: float) -> SpanRow:
        self._release(span)
        free = self._free[span.stage]
        if free:
            worker = heappop(free)
        else:
            worker = self._most[span.stage]
            self._most[span.stage] += 1
        return replace(span, state="working", taken=time, worker=worker)

    def _release(self, span: SpanRow) -> None:
        if span.worker is not None and span.state == "working":
            heappush(self._free[span.stage], span.worker)

    def _end(self, item: str, done: ItemDone, time: float) -> SpanRow:
        span = self._open.pop(item, None) or _sent(item, done.stage, None, time)
        self._made.discard(item)
        self._release(span)
        cost = done.cost
        return replace(
            span,
            state=done.outcome,
            reason=done.reason,
            done=time,
            busy=done.seconds,
            rollouts=cost.rollouts,
            tokens=cost.tokens,
            cost=cost.dollars,
        )


def _sent(item: str, stage: str, source: str | None, time: float) -> SpanRow:
    return SpanRow(
        item, flow_of(item), stage, source, "waiting", "", time, None, None, None, None, None, 0, 0, 0.0, 0, None, None
    )
