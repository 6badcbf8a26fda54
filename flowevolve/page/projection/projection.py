"""From the journal to the tables: events and calls in their order, one at a time, to the rows that they change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flowevolve.core.calls import HELD_OUT
from flowevolve.core.event_kinds import RunPaused, RunResumed, RunStarted, RunStopped, RunUnpaused
from flowevolve.core.events import Event
from flowevolve.core.item_ids import WorkPart, flow_of
from flowevolve.core.server_event_kinds import ServerLooked
from flowevolve.journal.reading import RecordedCall
from flowevolve.llm.client.accounting import Price
from flowevolve.page.projection.acts import acts
from flowevolve.page.projection.candidates import Candidates
from flowevolve.page.projection.cells import Cells
from flowevolve.page.projection.curve import Curve
from flowevolve.page.projection.decisions import decisions
from flowevolve.page.projection.judgements import Judgements
from flowevolve.page.projection.log import log_row
from flowevolve.page.projection.spans import Spans
from flowevolve.page.projection.spent import Spent
from flowevolve.page.tables.row import Row
from flowevolve.page.tables.run import ServerRow, StageRow
from flowevolve.page.tables.work import CallRow


class Projection:
    """Turns what the journal of a run holds so far into rows of the tables. Events and calls must come in their order.

    ``prices`` are the prices of models, by name.
    """

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices
        self._slots = Slots()
        self.spent = Spent()
        self._spans = Spans()
        self.candidates = Candidates()
        self.curve = Curve(self.candidates, self.spent)
        self._cells = Cells(self.candidates)
        self._judgements = Judgements(self._spans)
        self.start: RunStarted | None = None
        self.paused = False

    def event(self, event: Event) -> Iterator[Row]:
        """The rows that an event changes."""
        body = event.body
        if isinstance(body, RunStarted):
            self.start = body
            yield from (StageRow(name, place, None) for place, name in enumerate(body.stages))
        if isinstance(body, RunPaused | RunUnpaused | RunResumed | RunStopped):
            self.paused = isinstance(body, RunPaused)
        yield log_row(event)
        yield from self._spans.event(event)
        yield from self.candidates.event(event)
        yield from self._cells.event(event)
        yield from self.curve.event(event)
        yield from self._judgements.event(event)
        yield from decisions(event)
        yield from acts(event)
        if isinstance(body, ServerLooked):
            yield ServerRow(event.time, body.running, body.waiting, body.cache_usage, body.prefix_hit_rate)

    def call(self, call: RecordedCall) -> Iterator[Row]:
        """The rows that a finished call changes."""
        row = self._call_row(call)
        if not call.cached and call.stage != HELD_OUT:
            self.spent.take(row)
        yield row
        yield from self._spans.call(row)

    def _call_row(self, call: RecordedCall) -> CallRow:
        item, part = WorkPart.read(call.item)
        usage, price = call.usage, self._prices.get(call.model)
        paid = usage is not None and not call.cached
        return CallRow(
            id=call.id,
            role=call.role,
            model=call.model,
            stage=call.stage,
            item=item,
            part=part,
            flow=_flow(item),
            index=call.index,
            candidate=call.candidate,
            template=call.template,
            slot=self._slots.take(call.started, call.finished),
            queued=call.queued,
            begun=call.started,
            ended=call.finished,
            prompt_tokens=None if usage is None else usage.prompt_tokens,
            completion_tokens=None if usage is None else usage.completion_tokens,
            cached_tokens=None if usage is None else usage.cached_tokens,
            cost=None if price is None or usage is None else price.cost(usage) if paid else 0.0,
            attempts=call.attempts,
            outcome=_outcome(call),
            error=call.error,
        )


class Slots:
    """Gives each call a lane in which it overlaps with no other; calls come in the order in which they end."""

    def __init__(self) -> None:
        self._ends: list[float] = []

    def take(self, begun: float, ended: float) -> int:
        for slot, end in enumerate(self._ends):
            if end <= begun:
                self._ends[slot] = ended
                return slot
        self._ends.append(ended)
        return len(self._ends) - 1


def _flow(item: str) -> int | None:
    try:
        return flow_of(item)
    except ValueError:  # held_out has candidates' ids
        return None


def _outcome(call: RecordedCall) -> str:
    if call.cached:
        return "cached"
    if call.error is not None:
        return "cut" if call.error.startswith("CutWhileThinkingError:") else "failed"
    return "cut" if call.finish_reason == "length" else "ok"
