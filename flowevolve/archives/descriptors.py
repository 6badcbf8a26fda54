"""Behaviour spaces: candidates as points with coordinates between 0 and 1, and the cells that these fall into.

Scales and centroids are fitted once, on the first candidates, and then stay. If they moved with every candidate, as in
the published code, elites would later lie in other cells than those they were put into.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Literal, NamedTuple

from flowevolve._util.errors import InputError
from flowevolve.core.record import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from ribs.archives import CVTArchive

STD_FLOOR = 0.1
"""The smallest standard deviation that a scale uses."""
Z_LIMIT = 10.0
"""Values further than this many standard deviations from the mean are clipped to that distance."""
SAMPLES = 10_000
"""The number of points from which uniform centroids are computed, or ten times the centroids if that is more."""

Placement = Literal["data", "uniform"]


class Scale(NamedTuple):
    """Brings one feature between 0 and 1: the logistic function of its z-score."""

    mean: float
    std: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Scale:
        """The scale fitted on these values; if there is only one, the deviation is taken to be 1.

        Raises:
            ValueError: if there is no value.
        """
        return cls(fmean(values), max(STD_FLOOR, stdev(values)) if len(values) > 1 else 1.0)

    def __call__(self, value: float | None) -> float:
        """The scaled value: 0.5 for the mean, and for a value that is not known."""
        if value is None:
            return 0.5
        z = max(-Z_LIMIT, min(Z_LIMIT, (value - self.mean) / self.std))
        return 1 / (1 + math.exp(-z))


class Space(Record, kind="map_elites.fitted"):
    """Scales by the features' names, and centroids with a coordinate per feature. A point is in the cell of the nearest
    centroid. A `flowevolve.algorithms.levi.map_elites.MapElites` gets its space from a note of it.
    """

    scales: Mapping[str, Scale]
    centroids: tuple[tuple[float, ...], ...]

    def point(self, descriptor: Mapping[str, float]) -> tuple[float, ...]:
        """The place of a candidate with these features."""
        return tuple(scale(descriptor.get(name)) for name, scale in self.scales.items())


def fit_space(
    descriptors: Sequence[Mapping[str, float]], names: Sequence[str], *, cells: int, placement: Placement, seed: int
) -> Space:
    """Fit scales to candidates, then centroids: k-means of the candidates' points, or of points all over the space.

    There are at most ``cells`` centroids, and with ``data`` no more than there are different points. With fewer than
    two different points the data say nothing about the space, and centroids are ``uniform``. This takes a tenth of a
    second of CPU time.

    Raises:
        ValueError: if one of the names is a feature of no candidate.
        ImportError: if ribs is needed and not installed.
    """
    known = {name: [each[name] for each in descriptors if name in each] for name in names}
    scales = {name: Scale.of(values) for name, values in known.items()}
    unplaced = Space(scales=scales, centroids=())
    points = [unplaced.point(each) for each in descriptors]
    if placement == "data" and len(set(map(_rounded, points))) > 1:
        return Space(scales=scales, centroids=k_means(points, cells, seed))
    return Space(scales=scales, centroids=uniform_centroids(len(names), cells, seed))


def uniform_centroids(dimensions: int, cells: int, seed: int) -> tuple[tuple[float, ...], ...]:
    """Centroids of cells of about the same size (CVT; Vassiliades et al., arXiv 1610.05729)."""
    return _clustered(max(SAMPLES, 10 * cells), dimensions, cells, seed, {})


def k_means(points: Sequence[tuple[float, ...]], count: int, seed: int) -> tuple[tuple[float, ...], ...]:
    """The centroids of ``count`` clusters of points; if there are at most as many different points, these points."""
    samples = [_rounded(point) for point in points]
    different = sorted(set(samples))
    if len(different) <= count:
        return tuple(different)
    return _clustered(samples, len(different[0]), count, seed, {"init": "k-means++", "n_init": 4})


def _clustered(
    samples: int | Sequence[tuple[float, ...]], dimensions: int, count: int, seed: int, how: Mapping[str, object]
) -> tuple[tuple[float, ...], ...]:
    """The centroids that ribs finds on one thread. More threads take ten times the CPU time for so little work, and the
    last digits would depend on how many cores a machine has.
    """
    from ribs.archives import k_means_centroids  # noqa: PLC0415 - loads half a dozen heavy packages
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with ribs, for scikit-learn

    ranges = [(0.0, 1.0)] * dimensions
    with threadpool_limits(1):
        found, _ = k_means_centroids(
            centroids=count, ranges=ranges, samples=samples, seed=seed, k_means_kwargs=dict(how)
        )
    return _plain(found)


def _rounded(point: tuple[float, ...]) -> tuple[float, ...]:
    """The point as k-means gets it, rounded so that points very close to each other are equal. Squares of distances
    have rounding errors.
    """
    return tuple(round(value, 4) for value in point)


def _plain(points: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in point) for point in points)


def check_ribs(who: str) -> None:
    """Raises:
    InputError: if ribs is not installed, which ``who`` needs.
    """
    if find_spec("ribs") is None:
        raise InputError(f"{who} needs the library ribs: pip install 'flowevolve[ribs]'")


def load_ribs() -> None:
    """Import ribs. The first time this takes seconds, so callers do it in a thread, and the event loop goes on
    meanwhile.

    Raises:
        InputError: if it can't be loaded.
    """
    try:
        import ribs.archives  # noqa: F401, PLC0415
    except ImportError as error:
        raise InputError(f"the library ribs can't be loaded: {error}") from error


def cvt_archive(centroids: Sequence[Sequence[float]]) -> CVTArchive:
    """An empty archive of ribs with a cell for each centroid. Its solutions are integers."""
    import numpy as np  # noqa: PLC0415
    from ribs.archives import CVTArchive  # noqa: PLC0415

    points = np.asarray(centroids, dtype=np.float64)
    return CVTArchive(solution_dim=(), solution_dtype=np.int64, centroids=points, ranges=[(0.0, 1.0)] * points.shape[1])
