"""Flow shop scheduling in the form of EoH: a program leads a local search out of local optima."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.problems.base import DrivenProblem
from flowevolve.problems.checks import permutation
from flowevolve.problems.drivers import flow_shop
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.rows import Row, read_rows
from flowevolve.problems.sizes import check_least
from flowevolve.programs import Case, Verdict

Times = tuple[tuple[int, ...], ...]
"""The time of each job on each machine."""


class FlowShopRow(Row):
    """One instance; ``proc_times[job][machine]`` are its times."""

    proc_times: Times = Field(min_length=2)


class FlowShop(DrivenProblem):
    """Jobs that go through all machines in one order. Value of a case: a lower bound on the time over the time taken.

    The form is EoH's: to lead a local search out of a local optimum, the program changes the times that the search
    sees, and names the jobs that it may move. EoH searches for a minute; we search for a number of rounds, so that the
    score does not depend on the machine. The papers compare with the best known solutions of Taillard's instances (a
    gap of 0.23 % on average: EoH and CodeEvolve, table 7). Ours are other instances, so there is no reference. The
    program may use all that it sees; only the final order counts.
    """

    name = "flow_shop"
    entry = "perturb"
    play = "harness_play"
    driver = flow_shop

    def __init__(
        self,
        data: Path | None = None,
        jobs: int = 20,
        machines: int = 5,
        instances: int = 4,
        rounds: int = 10,
        seed: int = 0,
        limits: LimitsSetting = "quick",
    ) -> None:
        super().__init__(limits)
        check_least(1, rounds=rounds)
        self._times = real_times(data) if data is not None else drawn_times(jobs, machines, instances, seed)
        self.cases = [
            Case(str(place), {"times": [[*row] for row in times], "rounds": rounds})
            for place, times in enumerate(self._times)
        ]
        self.statement = (
            "Jobs go through machines, every job through all of them in the order 0, 1, 2, …, and every machine takes "
            "the jobs in the same order. Find the order of jobs that is done soonest.\n\n"
            "A local search starts from an order, and puts one job elsewhere as long as that helps. Write "
            f"`perturb(order, times)`, which leads it on when it is stuck, {rounds} times for each instance. `order` "
            "is where the search has come to, a list of jobs; `times[job][machine]` how long they take. It returns two "
            "lists: times that the search is to believe in next, of the same shape, and the jobs that it may "
            "move then. After that it goes on with all jobs and the true times; the best order found counts.\n\n"
            "The score of an instance is a time that no order is below, over the time the order takes, and the mean "
            f"counts over {len(self.cases)} instances of {len(self._times[0])} jobs or so. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        times = self._times[int(case.id)]
        order = permutation(result, "the order of jobs", len(times))
        makespan, bound = flow_shop.harness_makespan(order, times), least_time(times)
        return Verdict(
            bound / makespan,
            f"The order takes {makespan:g}; no order takes less than {bound}.",
            metrics={"makespan": makespan},
        )


def least_time(times: Times) -> int:
    """A lower bound for all orders: the most that any machine needs from the first arrival to the end of its last job.

    For each machine it adds up the shortest way to it, all its times, and the shortest way from it to the end.
    """
    bound = 0
    for machine in range(len(times[0])):
        before = min(sum(row[:machine]) for row in times)
        after = min(sum(row[machine + 1 :]) for row in times)
        bound = max(bound, before + sum(row[machine] for row in times) + after)
    return bound


def drawn_times(jobs: int, machines: int, instances: int, seed: int) -> Sequence[Times]:
    """Draw times from 1 to 99, as EoH and Taillard do."""
    check_least(2, jobs=jobs)
    check_least(1, machines=machines, instances=instances)
    rng = random.Random(f"flow shop {seed}")
    return [tuple(tuple(rng.randint(1, 99) for _ in range(machines)) for _ in range(jobs)) for _ in range(instances)]


def real_times(data: Path) -> Sequence[Times]:
    """Read instances from a file.

    Raises:
        InputError: if a row has jobs of different lengths, or times of 0 or below.
    """
    found = [row.proc_times for row in read_rows(data, FlowShopRow)]
    for place, times in enumerate(found, 1):
        if len({len(row) for row in times}) != 1 or any(time < 1 for row in times for time in row):
            raise InputError(f"{data}: row {place}: proc_times must give every job a time above 0 on every machine")
    return found
