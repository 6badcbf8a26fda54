"""Online bin packing in the form of EoH: items come one by one, and a program gives each bin a priority."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.problems.base import Choice, OnlineProblem
from flowevolve.problems.checks import list_of, whole_number
from flowevolve.problems.drivers import bin_packing
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.rows import Row, read_rows
from flowevolve.problems.sizes import check_least
from flowevolve.programs import Case, Verdict, WrongResultError

CAPACITY = 100
SHAPE, SCALE = 3.0, 45.0
"""The shape and the scale of the Weibull distribution that EoH draws items from."""
SAMPLED_CHOICES = 200
"""How many choices of each sequence the program is asked for a second time."""
EOH_GAPS = {"weibull_1k_test": 0.0224, "weibull_5k_test": 0.0080, "weibull_10k_test": 0.0061}
"""The mean excess of EoH's own heuristics over the lower bound with capacity 100 (CodeEvolve, table 5)."""


class BinPackingRow(Row):
    """One sequence of items, with the fields of EoH's data sets."""

    dataset: str = ""
    capacity: int = Field(gt=0)
    items: tuple[int, ...] = Field(min_length=1)


class OnlineBinPacking(OnlineProblem):
    """Items whose sizes follow a Weibull distribution. Value of a case: a lower bound on the bins over the bins used.

    The set-up is EoH's; no packing uses fewer than ceil(sum of sizes / capacity) bins. The papers give the gap, which
    is the number of bins over that bound minus 1, so value = 1 / (1 + gap). With EoH's test rows, the reference is 1 /
    (1 + EoH's gap); on 5,000 items first fit has a gap of 4.40 % there, and best fit one of 4.08 %. Instances drawn
    here, from the same distribution, have no reference.

    A program gets the item and the different amounts of room that open bins have left. In EoH's form it gets each bin,
    but bins with equal room are interchangeable. Choices are checked not to depend on later items (`OnlineProblem`).
    """

    name = "online_bin_packing"
    entry = "priority"
    play = "harness_play"
    ask_again = "harness_ask_again"
    driver = bin_packing

    def __init__(
        self,
        data: Path | None = None,
        dataset: str = "weibull_5k_test",
        capacity: int = CAPACITY,
        items: int = 5000,
        instances: int = 5,
        seed: int = 0,
        limits: LimitsSetting = "quick",
    ) -> None:
        super().__init__(limits)
        if data is not None:
            instances_of = real_instances(data, dataset, capacity)
            gap = EOH_GAPS.get(dataset) if capacity == CAPACITY else None
            self.reference = None if gap is None else 1 / (1 + gap)
        else:
            instances_of = drawn_instances(items, capacity, instances, seed)
        self.cases = [
            Case(f"{place}", {"items": list(sizes), "capacity": capacity}) for place, sizes in enumerate(instances_of)
        ]
        self._items = {case.id: sizes for case, sizes in zip(self.cases, instances_of, strict=True)}
        self.capacity = capacity
        self.statement = (
            "Items of different sizes come one by one. Each must go into a bin at once, without knowing what comes "
            f"next. A bin holds {capacity}; there are as many as one likes, and few are to be used.\n\n"
            "Write `priority(item, rooms)`, called once for each item. `item` is its size, a whole number. `rooms` is "
            "an ascending list of the different amounts of room that the item fits into: those left in bins in use, "
            f"and at the end {capacity}, which is a new bin. It returns a list with one number for each room; the item "
            "goes where the number is highest, at ties where there is less room. A priority must depend on the "
            "arguments alone, for some choices are asked for a second time on their own.\n\n"
            f"The score of a sequence is ceil(sum of sizes / {capacity}) / bins used, and the mean counts over "
            f"{len(self.cases)} sequences of {len(instances_of[0])} items or so. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        items = self._items[case.id]
        rooms = self._replayed(case, result, {})
        bins = rooms.count(self.capacity)
        least = math.ceil(sum(items) / self.capacity)
        empty = (bins * self.capacity - sum(items)) / bins
        return Verdict(
            least / bins,
            f"{len(items)} items took {bins} bins; {least} is the least possible. {empty:.2f} of a bin's "
            f"{self.capacity} stay empty on average.",
            metrics={"bins": float(bins), "gap": bins / least - 1},
        )

    def sample_choices(self, case: Case, result: JSON, rng: random.Random) -> Sequence[Choice]:
        items = self._items[case.id]
        kept: dict[int, Choice | None] = dict.fromkeys(rng.sample(range(len(items)), min(SAMPLED_CHOICES, len(items))))
        self._replayed(case, result, kept)
        return [choice for choice in kept.values() if choice is not None]

    def _replayed(self, case: Case, result: JSON, kept: dict[int, Choice | None]) -> list[int]:
        """Pack the items as the result says, and return the rooms chosen. Fill in the choices of the items in ``kept``.

        Raises:
            WrongResultError: at the first room that can't have been chosen.
        """
        answers = list_of(result, "the chosen rooms", len(self._items[case.id]))
        places = itertools.count()

        def choose(item: int, in_use: dict[int, int]) -> int:
            place = next(places)
            room = whole_number(answers[place], f"the room chosen for item {place}", self.capacity + 1)
            if room < item or (room != self.capacity and room not in in_use):
                raise WrongResultError(f"item {place}, of size {item}, can't go where {room} is left")
            if place in kept:
                kept[place] = Choice([item, [*bin_packing.harness_rooms(item, in_use, self.capacity)]], room)
            return room

        return bin_packing.harness_pack(self._items[case.id], self.capacity, choose)


def drawn_instances(items: int, capacity: int, instances: int, seed: int) -> list[tuple[int, ...]]:
    """Draw sequences of sizes from 1 to the capacity, as EoH does."""
    check_least(1, items=items, capacity=capacity, instances=instances)
    rng = random.Random(f"bin packing {seed}")
    return [
        tuple(max(1, min(capacity, round(rng.weibullvariate(SCALE, SHAPE)))) for _ in range(items))
        for _ in range(instances)
    ]


def real_instances(data: Path, dataset: str, capacity: int) -> list[tuple[int, ...]]:
    """Read the sequences of one data set from a file.

    Raises:
        InputError: if the file has no rows of the data set, or an item is larger than a bin.
    """
    rows = read_rows(data, BinPackingRow)
    found = [row.items for row in rows if row.dataset == dataset]
    if not found:
        sets = ", ".join(sorted({row.dataset for row in rows}))
        raise InputError(f"{data}: there are no rows of the set {dataset!r}, only of {sets}")
    if any(not 0 < item <= capacity for items in found for item in items):
        raise InputError(f"{data}: an item of the set {dataset!r} does not fit into a bin that holds {capacity}")
    return found
