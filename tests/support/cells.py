"""In which cell of MAP-Elites a candidate is, reckoned anew."""

from __future__ import annotations

from collections.abc import Iterable

from flowevolve.algorithms.levi.map_elites import Described
from flowevolve.archives.descriptors import Space, cvt_archive
from flowevolve.core.pool import Candidate


def cells_of(candidates: Iterable[Candidate], space: Space | None) -> list[int]:
    """The number of each one's cell, which is that of the nearest centroid."""
    assert space is not None, "there are no cells yet"
    points = [space.point(Described.of(each).descriptor) for each in candidates]
    return [int(cell) for cell in cvt_archive(space.centroids).index_of(points)]
