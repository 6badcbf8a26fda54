"""Words for messages."""

from __future__ import annotations


def counted(number: int, what: str, several: str = "") -> str:
    """A number of things: ``1 event``, ``2 events``. ``several`` is the plural if it is not ``what`` with an s."""
    return f"{number:,} {what if number == 1 else several or f'{what}s'}"
