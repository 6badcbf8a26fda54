"""Events as rows of the log."""

from __future__ import annotations

import json

from flowevolve._util.json_types import JSON
from flowevolve.core.events import Event
from flowevolve.page.tables.run import LogRow
from flowevolve.telemetry.logs import level_name

LONGEST = 600
"""The most characters of an event's other fields as JSON."""
LONGEST_TEXT = 160
"""The most characters of a text in these fields."""


def log_row(event: Event) -> LogRow:
    """An event as a row. Long texts in it are cut, and then its JSON as a whole."""
    data = event.data
    rest = {name: _short(value) for name, value in data.items() if name not in ("stage", "item", "candidate")}
    said = json.dumps(rest, ensure_ascii=False) if rest else ""
    stage, item, candidate = (_text(data.get(name)) for name in ("stage", "item", "candidate"))
    return LogRow(
        event.seq, event.time, event.kind, stage, item, candidate, _cut(said, LONGEST), level_name(event.kind)
    )


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) else None


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def _short(value: JSON) -> JSON:
    """A value with its texts cut, and its lists and tables limited to their first eight entries."""
    if isinstance(value, str):
        return _cut(value, LONGEST_TEXT)
    if isinstance(value, list):
        return [*map(_short, value[:8]), *(["…"] if len(value) > 8 else [])]
    if isinstance(value, dict):
        first = {name: _short(each) for name, each in list(value.items())[:8]}
        return {**first, **({"…": len(value) - 8} if len(value) > 8 else {})}
    return value
