"""Which programs of an island live on: the best of each cell of a feature space, or simply the best.

MAP-Elites (Mouret and Clune, arXiv 1504.04909) on a lattice, or on a centroidal Voronoi tessellation (CVT; Vassiliades
et al., arXiv 1610.05729). The library ribs computes the cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Literal, Protocol

from flowevolve.archives.descriptors import check_ribs, cvt_archive, load_ribs, uniform_centroids
from flowevolve.core.assessment import Assessment, works
from flowevolve.core.pool import Candidate
from flowevolve.programs.features import FEATURES, program_features

if TYPE_CHECKING:
    from ribs.archives import CVTArchive, GridArchive

FITNESS = "fitness"
"""The feature that is the score itself."""


class Elites(Protocol):
    """The living programs: a function of the programs that were entered, and of their order."""

    def enter(self, program: Candidate) -> None: ...
    def clear(self) -> None:
        """Forget all programs."""

    def __iter__(self) -> Iterator[Candidate]: ...


class Best:
    """The best ``size`` programs. If there is no room for a new one, it replaces the worst, provided that it is better.

    Programs that failed are worse than all others.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._living: list[Candidate] = []

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._living)

    def clear(self) -> None:
        self._living.clear()

    def enter(self, program: Candidate) -> None:
        if len(self._living) < self._size:
            self._living.append(program)
            return
        worst = min(reversed(self._living), key=_worth)
        if _worth(program) > _worth(worst):
            self._living.remove(worst)
            self._living.append(program)


def _worth(program: Candidate) -> tuple[bool, float]:
    return works(program), program.mean_score


class Cells:
    """Divides the unit cube into ``count`` cells by CVT, or into the largest lattice with equal sides and no more
    cells.

    The cells are computed when they are first needed, or by `make`. That takes about a second of CPU time, so call it
    in a thread. Equal arguments give equal cells.

    Raises:
        InputError: if ribs is not installed.
    """

    def __init__(self, kind: Literal["cvt", "grid"], dimensions: int, count: int) -> None:
        check_ribs(f"algorithm.archive.name: {kind!r}")
        self._kind = kind
        self._dimensions = dimensions
        self._count = count
        self._archive: CVTArchive | GridArchive | None = None

    def make(self) -> CVTArchive | GridArchive:
        """Raises:
        InputError: if ribs can't be loaded.
        """
        if self._archive is None:
            load_ribs()
            self._archive = self._lattice() if self._kind == "grid" else self._tessellation()
        return self._archive

    def index_of(self, points: Sequence[Sequence[float]]) -> list[int]:
        """The cell of each point."""
        archive = self.make()
        import numpy as np  # noqa: PLC0415 - an optional dependency, of ribs

        return [int(cell) for cell in archive.index_of(np.asarray(points))]

    def _tessellation(self) -> CVTArchive:
        return cvt_archive(uniform_centroids(self._dimensions, self._count, seed=0))

    def _lattice(self) -> GridArchive:
        from ribs.archives import GridArchive  # noqa: PLC0415 - an optional dependency

        side = next(side for side in range(self._count, 0, -1) if side**self._dimensions <= self._count)
        return GridArchive(solution_dim=(), dims=[side] * self._dimensions, ranges=[(0.0, 1.0)] * self._dimensions)


class Mapped:
    """The best program of each cell, or the first of several. Programs that failed have no cell.

    ``names`` are the features that span the space: `FITNESS`, those of `flowevolve.programs.features` over all files of
    a program, and metrics. A feature is normalised by its range in ``ranges`` or, if it has none there, by the least
    and the greatest value so far; when such a range grows, all programs are mapped anew.
    """

    def __init__(self, cells: Cells, names: Sequence[str], ranges: Mapping[str, tuple[float, float]]) -> None:
        self._cells = cells
        self._names = tuple(names)
        self._fixed = dict(ranges)
        self._seen: dict[str, tuple[float, float]] = {}
        self._entered: list[Candidate] = []
        self._measures: list[list[float]] = []
        self._elites: dict[int, Candidate] = {}

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._elites.values())

    def clear(self) -> None:
        for collected in (self._seen, self._entered, self._measures, self._elites):
            collected.clear()

    def enter(self, program: Candidate) -> None:
        if not works(program):
            return
        measures = _measures(program, self._names)
        self._entered.append(program)
        self._measures.append(measures)
        grown = [name for name, value in zip(self._names, measures, strict=True) if self._widen(name, value)]
        first = 0 if grown else len(self._entered) - 1
        if grown:
            self._elites.clear()
        cells = self._place(self._measures[first:])
        for cell, candidate in zip(cells, self._entered[first:], strict=True):
            elite = self._elites.get(cell)
            if elite is None or candidate.mean_score > elite.mean_score:
                self._elites[cell] = candidate

    def _widen(self, name: str, value: float) -> bool:
        """Extend the range of a feature to a value; returns whether the range has grown."""
        if name in self._fixed:
            return False
        low, high = self._seen.get(name, (value, value))
        self._seen[name] = wider = min(low, value), max(high, value)
        return wider != (low, high)

    def _place(self, rows: Sequence[Sequence[float]]) -> list[int]:
        spans = [self._fixed.get(name) or self._seen[name] for name in self._names]
        unit = [[_normalised(value, span) for value, span in zip(row, spans, strict=True)] for row in rows]
        return self._cells.index_of(unit)


def _normalised(value: float, span: tuple[float, float]) -> float:
    low, high = span
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5


def _measures(program: Candidate, names: Sequence[str]) -> list[float]:
    """The features of a program; 0 for those it lacks, for example because it is not written in Python."""
    found = program_features(program.artifact, [name for name in names if name in FEATURES]) or {}
    known = {**Assessment.of(program).metrics, **found, FITNESS: program.mean_score}
    return [value if isfinite(value := float(known.get(name, 0.0))) else 0.0 for name in names]
