"""How items that had missed changes of the pool were judged, and which edits were validated together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import CandidateProposed, ItemTaken, RepairJudged, RepairUnparsable
from flowevolve.core.events import Event
from flowevolve.core.item_ids import ItemId, parent_and_number
from flowevolve.page.projection.spans import Spans
from flowevolve.page.tables.candidates import GroupRow, JudgementRow
from flowevolve.page.tables.row import Row


class Judgements:
    """The rows of judgements and of groups."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        self._judged: dict[str, JudgementRow] = {}
        self._groups: dict[str, GroupRow] = {}

    def event(self, event: Event) -> Iterator[Row]:
        match event.body:
            case ItemTaken(item=item, stage=stage, gap=gap, judged=judged) if judged is not None:
                row = _judged(item, stage, event.time, gap, judged)
                yield self._keep(replace(row, candidate=self._spans.candidate_of(item)))
            case RepairJudged() as repair:
                row = self._row(repair.item, repair.stage, event.time, repair.gap)
                yield self._keep(
                    replace(
                        row,
                        candidate=repair.candidate,
                        parent=repair.parent,
                        head=repair.head,
                        verdict=repair.verdict,
                        reason=repair.reason,
                        patch=dict(repair.patch),
                    )
                )
            case RepairUnparsable() as repair:
                row = self._row(repair.item, repair.stage, event.time, repair.gap)
                yield self._keep(replace(row, candidate=repair.candidate, error=repair.error))
            case OwnEvent(kind="group.departed") as group:
                yield from self._departed(group, event.time)
            case CandidateProposed(item=item, candidate=candidate) if item in self._groups:
                yield replace(self._groups.pop(item), candidate=candidate)

    def _row(self, item: ItemId, stage: str, time: float, gap: int) -> JudgementRow:
        parent, number = parent_and_number(item)
        judged = parent if number is None else item
        return self._judged.get(judged) or _judged(judged, stage, time, gap, "repair")

    def _keep(self, row: JudgementRow) -> JudgementRow:
        self._judged[row.item] = row
        return row

    def _departed(self, group: OwnEvent, time: float) -> Iterator[GroupRow]:
        edits, head, way = group.data.get("edits"), group.data.get("head"), group.data.get("way")
        if isinstance(edits, list):
            row = GroupRow(
                group.item,
                str(group.data.get("stage", "")),
                time,
                head if isinstance(head, str) else None,
                tuple(map(str, edits)),
                way if isinstance(way, str) else "model",
                None,
            )
            self._groups[row.item] = row
            yield row


def _judged(item: str, stage: str, time: float, gap: int, policy: str) -> JudgementRow:
    return JudgementRow(item, stage, time, gap, policy, None, None, None, None, None, {}, None)
