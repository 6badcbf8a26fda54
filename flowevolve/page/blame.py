"""Where each sentence of a candidate's text came from."""

from __future__ import annotations

from flowevolve.page.memory import Tables
from flowevolve.page.tables import BlameRow


def blame(tables: Tables, candidate: str) -> list[BlameRow]:
    """A row for each sentence of each text of a candidate, in the order of the texts; empty if there is none.

    ``tables`` has the rows of candidates, components, calls, groups and spans.
    """
    return []
