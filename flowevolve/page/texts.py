"""The prompts and replies that a report has in it, as many as there is room for, the most telling ones first."""

from __future__ import annotations

from dataclasses import dataclass, field

from flowevolve._util.json_types import JSON
from flowevolve.journal.reading import RecordedRun
from flowevolve.page.memory import Tables
from flowevolve.page.tables import CallRow, RunRow

ROOM = 6_000_000
"""Characters of prompts and replies in a report, before they are compressed."""


@dataclass(slots=True)
class EmbeddedTexts:
    """``texts`` has the distinct texts and, by call, which of them are its messages, thoughts and reply."""

    texts: dict[str, JSON] = field(default_factory=dict)
    left_out: list[JSON] = field(default_factory=list)
    """What was left out, in words."""


def embedded_texts(recorded: RecordedRun, tables: Tables) -> EmbeddedTexts:
    """The texts of calls: first those of calls that write candidates, then those about the best one, then the rest."""
    strings: dict[str, int] = {}
    calls: dict[str, JSON] = {}
    room, total = ROOM, 0

    def place(text: str | None) -> int | None:
        return None if text is None else strings.setdefault(text, len(strings))

    for number in _by_worth(tables):
        total += 1
        call = recorded.call(number) if room > 0 else None
        if call is None or call.messages is None:
            continue
        known = len(strings)
        messages: list[JSON] = [[each.role, place(each.content)] for each in call.messages]
        calls[str(number)] = [messages, place(call.thinking), place(call.reply)]
        room -= sum(map(len, list(strings)[known:]))
    left_out: list[JSON] = []
    if len(calls) < total:
        left_out.append(
            f"the prompts and replies of {total - len(calls)} of {total} calls: flowevolve watch has them all"
        )
    return EmbeddedTexts({"strings": list(strings), "calls": calls}, left_out)


def _by_worth(tables: Tables) -> list[int]:
    run = next(tables.of(RunRow))

    def worth(call: CallRow) -> tuple[bool, bool, bool, int]:
        return (call.template is None, call.outcome != "failed", call.candidate != run.best, call.id)

    return [call.id for call in sorted(tables.of(CallRow), key=worth)]
