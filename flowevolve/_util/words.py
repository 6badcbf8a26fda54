"""Words for messages."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """A number of things: ``1 event``, ``2 events``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
