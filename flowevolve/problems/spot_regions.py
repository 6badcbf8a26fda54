"""Spot scheduling in several regions: a job with a deadline may move to where cheap machines can be had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.problems.checks import list_of
from flowevolve.problems.drivers import spot
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.rows import Row, read_rows
from flowevolve.problems.sizes import check_least
from flowevolve.problems.spot import (
    CHOICES,
    ON_DEMAND_PRICE,
    SPOT_PRICE,
    STEPS,
    Chooser,
    SpotProblem,
    Trace,
    drawn_traces,
)

UP_HOURS, DOWN_HOURS = (0.5, 1.0, 3.0), (3.0, 8.0, 20.0)
"""As for one region, but machines are rarer, since otherwise some region would nearly always have one."""


class RegionsRow(Row):
    """For each region whether a spot machine is available there, every ten minutes."""

    available: tuple[tuple[bool, ...], ...]


class SpotMultiRegion(SpotProblem):
    """48 hours of work by a deadline, in any of several regions. Value of a case: as `SpotScheduling`.

    This is ADRS's "can't be late" in several regions (LEVI's Spot-M). Finished work moves with the job. The machine in
    the new region must be started, which is all that moving costs; prices are the same everywhere. Published scores are
    scaled as our metric ``saved``: LEVI has 72.4. They are for recorded traces without a licence. Ours are drawn,
    region by region, so there is no reference.
    """

    name = "spot_multi_region"
    play = "harness_play_regions"
    ask_again = "harness_ask_again_regions"
    must = f"there must be one of {', '.join(CHOICES)}, and the number of a region"

    def __init__(
        self,
        data: Path | None = None,
        regions: int = 3,
        traces: int = 8,
        seed: int = 0,
        limits: LimitsSetting = "quick",
    ) -> None:
        super().__init__(read_regions(data) if data is not None else drawn_regions(regions, traces, seed), limits)
        self.statement = (
            "A job must be done by a deadline, at low cost. It can run in any of several regions, on a spot machine, "
            "which is cheap but can be had in a region only at times and is taken away without warning, or on a "
            "machine on demand, which can always be had. What is done is never lost, but starting a machine, also "
            "after waiting, after a change from one kind to the other or from one region to another, takes some time "
            "that is paid for in which nothing is done.\n\n"
            "Write `decide(state)`, called at the beginning of each step of the job. It returns a pair of 'spot', "
            "'on_demand' or 'wait' and the number of the region; numbers begin at 0, and the job begins in region 0. "
            "`state` is a dict: `elapsed`, `deadline` and `left` (seconds since the start; when the job must be done; "
            "of work), `step` and `restart` (seconds that a step takes; that starting a machine takes), `running` (one "
            "of the three words: what the job has just now; 'wait' if its spot machine has just been taken away), "
            "`region` (where it is), `starting` (seconds until the running machine is ready), `available` (for each "
            "region whether a spot machine can be had there in this step), `seen` (for each region a list of what "
            "that has been in each step so far, this one last). Asking for spot where there is none is waiting. A job "
            "that could no longer be done in time if all went wrong gets a machine on demand whatever you return. A "
            "choice must depend on `state` alone, for some are asked for a second time on their own.\n\n"
            f"A spot machine costs ${SPOT_PRICE} an hour, one on demand ${ON_DEMAND_PRICE}, in all regions. The score "
            "is the cost of the work on spot machines that never go, divided by the mean cost over "
            f"{len(self._journeys)} sets of traces of what was available; the mean counts over {len(self.cases)} pairs "
            f"of deadline and restart time. {self.rules}"
        )

    def told(self, journeys: Sequence[Sequence[Trace]]) -> Mapping[str, JSON]:
        return {"journeys": [[[*trace] for trace in journey] for journey in journeys]}

    def travel(self, journey: list[Trace], job: Mapping[str, float], choose: Chooser) -> tuple[float, int]:
        cost, made = spot.harness_travel(journey, job, lambda state: list_of(choose(state), "a choice"))
        return cost, len(made)

    def is_choice(self, choice: JSON, regions: int) -> bool:
        return isinstance(choice, list) and len(choice) == 2 and choice[0] in CHOICES and is_region(choice[1], regions)


def is_region(value: JSON, regions: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < regions


def read_regions(data: Path) -> list[list[Trace]]:
    """Read the traces of a file.

    Raises:
        InputError: naming the row whose traces are too short, or too few.
    """
    rows = read_rows(data, RegionsRow)
    for place, row in enumerate(rows, 1):
        if not row.available or min(map(len, row.available)) < STEPS:
            raise InputError(f"{data}: row {place}.available: give a list for each region, each of {STEPS} or more")
    return [[list(trace) for trace in row.available] for row in rows]


def drawn_regions(regions: int, traces: int, seed: int) -> list[list[Trace]]:
    """Draw each region's traces on its own."""
    check_least(1, regions=regions, traces=traces)
    flat = drawn_traces(regions * traces, seed, UP_HOURS, DOWN_HOURS)
    return [flat[start : start + regions] for start in range(0, len(flat), regions)]
