"""MAP-Elites over a Voronoi tessellation: the best candidate of every cell of a behaviour space.

Vassiliades et al., arXiv 1610.05729; as in LEVI (§3), the space is fitted to the first candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from flowevolve.archives.descriptors import Space, cvt_archive, k_means
from flowevolve.core.pool import DEFAULT_POOL, Add, Annotate, Candidate, Note, Update, Vetoed
from flowevolve.core.record import Attributes

if TYPE_CHECKING:
    from ribs.archives import CVTArchive


class Described(Attributes):
    """The features of a candidate by name, as they were measured; empty if none were."""

    descriptor: Mapping[str, int | float] = {}


class MapElites:
    """The elites of a pool: the confirmed candidate with the highest mean score of each cell, or the first of several.

    It is a function of the log. The note of a `Space` defines the cells into which all candidates fall from then on.
    Before that, every candidate is an elite.
    """

    def __init__(self, pool: str = DEFAULT_POOL) -> None:
        self.space: Space | None = None
        self._pool = pool
        self._candidates: list[Candidate] = []
        self._places: dict[str, int] = {}
        self._vetoed: set[str] = set()
        self._cells: CVTArchive | None = None

    def apply(self, update: Update) -> None:
        rebuild = False
        for change in update.changes:
            if change.pool != self._pool:
                continue
            match change:
                case Add(candidate=candidate, status="confirmed"):
                    self._places[candidate.id] = len(self._candidates)
                    self._candidates.append(candidate)
                    self._put([candidate])
                case Annotate(candidate_id=name) if name in self._places:
                    place = self._places[name]
                    self._candidates[place] = _annotated(self._candidates[place], change)
                    rebuild = True
                case Vetoed(candidate_id=name, stands=stands):
                    (self._vetoed.add if stands else self._vetoed.discard)(name)
                    rebuild = True
                case Note(kind=Space.kind, data=data):
                    self.space = Space.from_json(data)
                    rebuild = True
                case _:
                    pass
        if rebuild and self.space is not None:
            self._cells = cvt_archive(self.space.centroids)
            self._put(self._candidates)

    def _put(self, added: Sequence[Candidate]) -> None:
        candidates = [each for each in added if each.id not in self._vetoed]
        if self._cells is None or self.space is None or not candidates:
            return
        self._cells.add(
            [self._places[each.id] for each in candidates],
            [each.mean_score for each in candidates],
            [self.space.point(Described.of(each).descriptor) for each in candidates],
        )

    @property
    def candidates(self) -> Sequence[Candidate]:
        """All confirmed candidates that nobody has vetoed, oldest first."""
        return [each for each in self._candidates if each.id not in self._vetoed] if self._vetoed else self._candidates

    @property
    def elites(self) -> Sequence[Candidate]:
        """The elites, oldest first."""
        if self._cells is None:
            return self.candidates
        return [self._candidates[place] for place in sorted(self._cells.data("solution").tolist())]

    def __getitem__(self, candidate_id: str) -> Candidate:
        """The confirmed candidate of this id."""
        return self._candidates[self._places[candidate_id]]

    def __contains__(self, candidate_id: str) -> bool:
        """Whether this is an elite."""
        return any(each.id == candidate_id for each in self.elites)

    def admits(self, candidate: Candidate) -> bool:
        """Whether it would be the elite of its cell: the cell is empty, or its elite has a lower mean score."""
        if self._cells is None or self.space is None:
            return True
        occupied, elite = self._cells.retrieve_single(self.space.point(Described.of(candidate).descriptor))
        return not occupied or candidate.mean_score > float(elite["objective"])

    def best(self) -> Candidate | None:
        """The elite with the highest mean score, or the oldest of several."""
        return max(self.elites, key=lambda each: each.mean_score, default=None)

    def spread(self) -> Sequence[tuple[str, float, tuple[float, ...]]]:
        """The elites' ids, mean scores and points, for `representatives`; no points before there is a space."""
        space = self.space or Space(scales={}, centroids=())
        return [(each.id, each.mean_score, space.point(Described.of(each).descriptor)) for each in self.elites]


def representatives(spread: Sequence[tuple[str, float, tuple[float, ...]]], count: int, seed: int) -> list[str]:
    """The ids of good elites that lie far from each other, best first: the best of each of ``count`` clusters.

    Clusters are found by k-means on the elites' points, which takes some CPU time (LEVI, appendix F).
    """
    if len(spread) <= count or not spread[0][2]:
        return [name for name, _, _ in sorted(spread, key=lambda each: -each[1])[:count]]
    centres = k_means([point for _, _, point in spread], count, seed)
    best: dict[int, tuple[float, str]] = {}
    for name, score, point in spread:
        nearest = min(range(len(centres)), key=lambda place: _distance(point, centres[place]))
        if nearest not in best or score > best[nearest][0]:
            best[nearest] = score, name
    return [name for _, name in sorted(best.values(), key=lambda each: -each[0])]


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _annotated(candidate: Candidate, change: Annotate) -> Candidate:
    """The candidate as the pool has it after this change."""
    new = replace(candidate, attributes={**candidate.attributes, **change.attributes})
    return new if change.scores is None else new.scored(change.scores)
