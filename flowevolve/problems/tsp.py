"""The travelling salesman problem in the form of EoH: a tour grows town by town, and a program chooses the next one."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import DrivenProblem
from flowevolve.problems.checks import permutation
from flowevolve.problems.drivers import tsp
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.rows import Row, read_rows
from flowevolve.problems.sizes import check_least
from flowevolve.programs import Case, Verdict

Town = tuple[float, float]


class TspRow(Row):
    """One instance, with the fields of EoH's data sets: the towns, and the length of the tour that LKH finds."""

    coords: tuple[Town, ...] = Field(min_length=3)
    lkh_tour_len: float | None = Field(default=None, gt=0)


class TspConstruction(DrivenProblem):
    """A tour of towns drawn uniformly from the unit square. Value of a case: a target length over the tour's.

    The set-up is EoH's. For rows with ``lkh_tour_len`` the target is the length of LKH's tour, so value = 1 / (1 + gap)
    with the gap that the papers give, and the reference is 1 (a gap of 0.000 with 20 and 50 towns, after a local
    search: EoH and CodeEvolve, table 6). For towns drawn here the target is the length of the minimum spanning tree,
    which is about 0.8 of the best tour's, and there is no reference.

    A program may plan the whole tour when it is first called. All towns are known from the start, so this is not
    cheating but another heuristic.
    """

    name = "tsp_construction"
    entry = "next_town"
    play = "harness_tour"
    driver = tsp

    def __init__(
        self,
        data: Path | None = None,
        towns: int = 50,
        instances: int = 8,
        seed: int = 0,
        limits: LimitsSetting = "quick",
    ) -> None:
        super().__init__(limits)
        if data is not None:
            rows = read_rows(data, TspRow)
            self._towns = [row.coords for row in rows]
            self._least = [row.lkh_tour_len or spanning_tree(row.coords) for row in rows]
            self.reference = 1.0 if all(row.lkh_tour_len is not None for row in rows) else None
        else:
            self._towns = drawn_towns(towns, instances, seed)
            self._least = [spanning_tree(each) for each in self._towns]
        self.cases = [
            Case(str(place), {"distances": [[math.dist(one, other) for other in each] for one in each]})
            for place, each in enumerate(self._towns)
        ]
        self.statement = (
            "Build a short round tour through towns in the plane, one town after another.\n\n"
            "Write `next_town(here, start, left, distances)`, called for each step. `here` is the town the tour has "
            "come to, `start` where it began and will end, `left` a list of the towns not yet visited, ascending, and "
            "`distances[a][b]` how far it is from town a to town b. It returns one of the towns in `left`.\n\n"
            "The score of an instance is a length that no tour is below, over the length of the tour, and the mean "
            f"counts over {len(self.cases)} instances of {len(self._towns[0])} towns or so. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        place = int(case.id)
        towns, least = self._towns[place], self._least[place]
        tour = permutation(result, "the tour", len(towns))
        legs = [math.dist(towns[a], towns[b]) for a, b in zip(tour, [*tour[1:], tour[0]], strict=True)]
        length = math.fsum(legs)
        step = legs.index(max(legs))
        return Verdict(
            least / length,
            f"The tour is {length:.4f} long, {length / least:.4f} times what is known to be needed. Its longest leg, "
            f"{legs[step]:.3f}, is step {step + 1} of {len(legs)}; the last, back home, is {legs[-1]:.3f}.",
            metrics={"length": length},
        )


def drawn_towns(towns: int, instances: int, seed: int) -> list[tuple[Town, ...]]:
    check_least(3, towns=towns)
    check_least(1, instances=instances)
    rng = random.Random(f"tsp {seed}")
    return [tuple((rng.random(), rng.random()) for _ in range(towns)) for _ in range(instances)]


def spanning_tree(towns: Sequence[Town]) -> float:
    """The length of the minimum spanning tree, by Prim's algorithm.

    No tour is shorter, since a tour without one of its legs is a spanning tree.
    """
    nearest = {town: math.dist(towns[0], towns[town]) for town in range(1, len(towns))}
    length = 0.0
    while nearest:
        town = min(nearest, key=nearest.__getitem__)
        length += nearest.pop(town)
        for other, far in nearest.items():
            nearest[other] = min(far, math.dist(towns[town], towns[other]))
    return length
