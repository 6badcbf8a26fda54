"""The prompts and replies that a report contains, as many as there is room for, the most informative ones first."""

from __future__ import annotations

from dataclasses import dataclass, field

from flowevolve._util.json_types import JSON
from flowevolve.journal.reading import RecordedCall, RecordedRun
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow
from flowevolve.page.tables.work import CallRow

ROOM, ROOM_OF_A_CALL = 500_000, 100
"""The most characters of prompts and replies in a report, before compression: for any run, and in addition for each
call.
"""


@dataclass(slots=True)
class EmbeddedTexts:
    """``texts`` has the distinct texts and, by call, which of them are its messages, thoughts and reply.

    ``left_out`` says what was left out, in sentences.
    """

    texts: dict[str, JSON] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def embedded_texts(recorded: RecordedRun, tables: Tables) -> EmbeddedTexts:
    """The texts of calls: first of those with a template, which write candidates; among equals, first of those that
    failed, then of those about the best candidate.
    """
    rows = _by_worth(tables)
    chosen = _chosen(recorded, rows)
    strings: dict[str, int] = {}

    def place(text: str | None) -> int | None:
        return None if text is None else strings.setdefault(text, len(strings))

    calls: dict[str, JSON] = {}
    for row in sorted(rows, key=_likeness):
        if (call := chosen.get(row.id)) is not None:
            messages: list[JSON] = [[each.role, place(each.content)] for each in call.messages or ()]
            calls[str(row.id)] = [messages, place(call.thinking), place(call.reply)]
    missing = len(rows) - len(calls)
    left_out: list[str] = []
    if missing:
        left_out.append(f"The prompts and replies of {missing:,} of {len(rows):,} requests are not in this file.")
    return EmbeddedTexts({"strings": list(strings), "calls": calls}, left_out)


def _chosen(recorded: RecordedRun, rows: list[CallRow]) -> dict[int, RecordedCall]:
    """The calls for whose texts there is room, by id. A text that recurs takes room once."""
    room = ROOM + ROOM_OF_A_CALL * len(rows)
    chosen: dict[int, RecordedCall] = {}
    seen: set[str] = set()
    for row in rows:
        if room <= 0:
            break
        call = recorded.call(row.id)
        if call is None or call.messages is None:
            continue
        chosen[row.id] = call
        new = {each.content for each in call.messages} | {call.thinking or "", call.reply or ""}
        room -= sum(map(len, new - seen))
        seen |= new
    return chosen


def _by_worth(tables: Tables) -> list[CallRow]:
    """The calls, the most informative first."""
    run = next(tables.of(RunRow))

    def worth(call: CallRow) -> tuple[bool, bool, bool]:
        return (call.template is None, call.outcome != "failed", call.candidate != run.best)

    return sorted(tables.of(CallRow), key=worth)


def _likeness(call: CallRow) -> tuple[str, str, int]:
    """A sort key that puts calls with similar texts beside each other, so that they compress better."""
    return (call.part or "", call.role, call.id)
