"""The cells of an archive and the islands, with the candidates in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import dist

from pydantic import ValidationError

from flowevolve._util.json_types import JSON
from flowevolve.archives.descriptors import Space
from flowevolve.core.event_kinds import PoolCommitted
from flowevolve.core.events import Event
from flowevolve.core.logged_changes import LoggedAdd, LoggedAnnotate, LoggedChange, LoggedMove, LoggedNote
from flowevolve.page.projection.candidates import Candidates
from flowevolve.page.tables.candidates import CellRow

MAP = "map"
"""The name of the archive whose cells a `Space` gives."""


class Cells:
    """The rows of cells. The candidates of an archive get cells once its space is fitted."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._space: Space | None = None
        self._described: dict[str, Mapping[str, float]] = {}
        """The features of the candidates, oldest first."""
        self._best: dict[int, tuple[str, float]] = {}
        """The candidate of each cell, and its score."""
        self._islands: dict[str, tuple[JSON, float]] = {}
        """The island of each candidate that is on one, and since when it is there."""

    def event(self, event: Event) -> Iterator[CellRow]:
        if isinstance(event.body, PoolCommitted):
            for change in event.body.changes:
                yield from self._change(change, event.time)

    def _change(self, change: LoggedChange, time: float) -> Iterator[CellRow]:
        match change:
            case LoggedMove(move=name) | LoggedAnnotate(annotate=name) if name in self._islands:
                yield self._on_island(name)
        match change:
            case LoggedAdd(add=name, attributes=attributes):
                if isinstance(descriptor := attributes.get("descriptor"), dict):
                    self._described[name] = _numbers(descriptor)
                    yield from self._place(name, time)
                if (island := attributes.get("island")) is not None:
                    self._islands[name] = island, time
                    yield self._on_island(name)
            case LoggedAnnotate(annotate=name, attributes=attributes) if name in self._described:
                if isinstance(descriptor := attributes.get("descriptor"), dict):
                    self._described[name] = _numbers(descriptor)
                yield from self._place_all(time)
            case LoggedNote(note=Space.kind, data=data):
                try:
                    self._space = Space.from_json(data)
                except ValidationError:  # of another version
                    return
                yield from self._place_all(time)

    def _on_island(self, candidate: str) -> CellRow:
        island, since = self._islands[candidate]
        row = self._candidates.rows.get(candidate)
        return CellRow(f"island {island}", candidate, (), candidate, None if row is None else row.score, since)

    def _place_all(self, time: float) -> Iterator[CellRow]:
        """Place every candidate anew."""
        self._best.clear()
        for name in self._described:
            yield from self._place(name, time)

    def _place(self, name: str, time: float) -> Iterator[CellRow]:
        """The row of a candidate's cell, if it is better than the one that was there."""
        row = self._candidates.rows.get(name)
        if self._space is None or row is None or row.score is None:
            return
        point = self._space.point(self._described[name])
        distances = [dist(point, centroid) for centroid in self._space.centroids]
        cell = distances.index(min(distances))
        if cell not in self._best or row.score > self._best[cell][1]:
            self._best[cell] = (name, row.score)
            yield CellRow(MAP, str(cell), point, name, row.score, time)


def _numbers(table: Mapping[str, JSON]) -> dict[str, float]:
    return {name: value for name, value in table.items() if isinstance(value, int | float)}
