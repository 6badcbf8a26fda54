"""Spot scheduling: a job with a deadline, on cheap machines that come and go, or on expensive ones that stay."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field, JsonValue, TypeAdapter

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import Choice, OnlineProblem
from flowevolve.problems.checks import list_of
from flowevolve.problems.drivers import spot
from flowevolve.problems.limits import LimitsSetting
from flowevolve.problems.rows import Row, read_rows
from flowevolve.problems.sizes import check_least
from flowevolve.programs import Case, Verdict, WrongResultError

STEP = 600.0
WORK_HOURS = 48
DEADLINE_HOURS = (52, 70)
RESTART_SECONDS = (72.0, 180.0, 360.0)
SPOT_PRICE, ON_DEMAND_PRICE = 0.9731, 3.06
"""The prices of both kinds of machines, in dollars an hour."""
STEPS = round(max(DEADLINE_HOURS) * 3600 / STEP)
"""The steps of the longest job, which every trace must have."""
CHOICES = ("wait", "spot", "on_demand")
UP_HOURS, DOWN_HOURS = (1.0, 3.0, 8.0, 20.0), (0.5, 2.0, 6.0)
"""The mean hours for which drawn spot machines stay available, and unavailable; each trace draws one of each."""

Trace = list[bool]
Chooser = Callable[[dict[str, object]], JSON]
_STATE: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
"""Validates the state that a program sees at the beginning of a step."""


class TraceRow(Row):
    """A trace: whether a spot machine is available, every ten minutes."""

    available: tuple[bool, ...] = Field(min_length=STEPS)


class SpotProblem(OnlineProblem):
    """A job with a deadline, in one region or in several. Each journey has a trace for each region.

    Each pair of deadline and restart time is a case, all with the same journeys. A job that could miss its deadline in
    the worst case is moved to an on-demand machine, so that no job is late. Choices are checked not to depend on what
    is still to come (`OnlineProblem`).
    """

    entry = "decide"
    driver = spot

    def __init__(self, journeys: Sequence[Sequence[Trace]], limits: LimitsSetting) -> None:
        super().__init__(limits)
        self._journeys = [[*journey] for journey in journeys]
        self._jobs = {
            f"{hours}_hours_{seconds:g}_seconds": {
                "work": WORK_HOURS * 3600.0,
                "deadline": hours * 3600.0,
                "restart": seconds,
                "step": STEP,
                "spot_price": SPOT_PRICE,
                "on_demand_price": ON_DEMAND_PRICE,
            }
            for hours in DEADLINE_HOURS
            for seconds in RESTART_SECONDS
        }
        self.cases = [Case(name, {**self.told(self._cut(job)), "job": {**job}}) for name, job in self._jobs.items()]

    def told(self, journeys: Sequence[Sequence[Trace]]) -> Mapping[str, JSON]:
        """The journeys as an argument of the driver."""
        raise NotImplementedError

    def travel(self, journey: list[Trace], job: Mapping[str, float], choose: Chooser) -> tuple[float, int]:
        """The cost of a journey, and how many choices were made. ``choose`` returns a choice in the program's form."""
        raise NotImplementedError

    def is_choice(self, choice: JSON, regions: int) -> bool:
        """Whether this is a valid choice with this many regions."""
        raise NotImplementedError

    def score(self, case: Case, result: JSON) -> Verdict:
        job = self._jobs[case.id]
        costs = self._replayed(case, result, lambda *_: None)
        mean = sum(costs) / len(costs)
        cheapest, dearest = (WORK_HOURS * price for price in (SPOT_PRICE, ON_DEMAND_PRICE))
        worst = costs.index(max(costs))
        hours = [available for trace in self._journeys[worst] for available in trace]
        share = sum(hours) / len(hours)
        return Verdict(
            cheapest / mean,
            f"With {job['deadline'] / 3600:g} hours to go and {job['restart']:g} seconds to start: ${mean:.2f} on "
            f"average, between ${min(costs):.2f} and ${costs[worst]:.2f} (a trace on which spot machines can be had "
            f"{share:.0%} of the time); ${dearest:.2f} is what the work costs on demand.",
            metrics={"cost": mean, "saved": 100 * (dearest - mean) / (dearest - cheapest)},
        )

    def sample_choices(self, case: Case, result: JSON, rng: random.Random) -> Sequence[Choice]:
        """Draw one choice of each journey. Two of one journey would reveal what came after the first."""
        places = [rng.randrange(len(list_of(each, "the choices"))) for each in list_of(result, "the choices")]
        kept: list[Choice] = []

        def keep(journey: int, step: int, state: Mapping[str, object], choice: JSON) -> None:
            if step == places[journey]:
                kept.append(Choice([_STATE.validate_python(state)], choice))

        self._replayed(case, result, keep)
        return kept

    def _replayed(
        self, case: Case, result: JSON, see: Callable[[int, int, Mapping[str, object], JSON], None]
    ) -> list[float]:
        """Run the job as the result says, and return its cost on each journey.

        ``see`` is called for each choice with the number of the journey, the step, the state and the choice.

        Raises:
            WrongResultError: at the first choice that is not valid.
        """
        job = self._jobs[case.id]
        answers = list_of(result, "the choices", len(self._journeys))
        costs = []
        for number, journey in enumerate(self._cut(job)):
            choices = list_of(answers[number], f"the choices of trace {number}")
            steps = itertools.count()

            def choose(
                state: Mapping[str, object],
                number: int = number,
                choices: list[JSON] = choices,
                steps: Iterator[int] = steps,
                regions: int = len(journey),
            ) -> JSON:
                step = next(steps)
                choice = choices[step] if step < len(choices) else None
                if not self.is_choice(choice, regions):
                    raise WrongResultError(f"trace {number}, step {step}: {self.must}")
                see(number, step, state, choice)
                return choice

            cost, made = self.travel(journey, job, choose)
            if made < len(choices):
                raise WrongResultError(f"trace {number} has {len(choices)} choices for {made} steps")
            costs.append(cost)
        return costs

    must: str
    """What a choice must be, for messages."""

    def _cut(self, job: Mapping[str, float]) -> list[list[Trace]]:
        """The journeys, cut off at the job's deadline."""
        steps = round(job["deadline"] / job["step"])
        return [[trace[:steps] for trace in journey] for journey in self._journeys]


class SpotScheduling(SpotProblem):
    """48 hours of work by a deadline. Value of a case: the cost on spot machines that are always there, over the mean
    cost.

    This is ADRS's "can't be late" in one region, with its prices, its work, its deadlines (52 and 70 hours) and its
    restart times (0.02, 0.05 and 0.1 hours). Published scores are scaled to 100 for spot machines that are never taken
    away and 0 for machines on demand, as our metric ``saved`` is; LEVI has 51.7. They are for recorded traces without a
    licence. Ours are drawn, so there is no reference.
    """

    name = "spot_scheduling"
    play = "harness_play"
    ask_again = "harness_ask_again"
    must = f"there must be one of {', '.join(CHOICES)}"

    def __init__(
        self, data: Path | None = None, traces: int = 16, seed: int = 0, limits: LimitsSetting = "quick"
    ) -> None:
        found = [list(row.available) for row in read_rows(data, TraceRow)] if data is not None else None
        super().__init__([[trace] for trace in found or drawn_traces(traces, seed)], limits)
        self.statement = (
            "A job must be done by a deadline, at low cost. It can run on a spot machine, which is cheap but can be "
            "had only at times and is taken away without warning, or on a machine on demand, which can always be had. "
            "What is done is never lost, but starting a machine, also after waiting or after a change from one kind to "
            "the other, takes some time that is paid for in which nothing is done.\n\n"
            "Write `decide(state)`, called at the beginning of each step of the job. It returns 'spot', 'on_demand' or "
            "'wait'. `state` is a dict: `elapsed`, `deadline` and `left` (seconds since the start; when the job must "
            "be done; of work), `step` and `restart` (seconds that a step takes; that starting a machine takes), "
            "`running` (one of the three words: what the job has just now; 'wait' if its spot machine has just been "
            "taken away), `starting` (seconds until the running machine is ready), `available` (whether a spot machine "
            "can be had in this step), `seen` (a list of what `available` has been in each step so far, this one "
            "last). Asking for spot when there is none is waiting. A job that could no longer be done in time if all "
            "went wrong gets a machine on demand whatever you return. A choice must depend on `state` alone, for some "
            "are asked for a second time on their own.\n\n"
            f"A spot machine costs ${SPOT_PRICE} an hour, one on demand ${ON_DEMAND_PRICE}. The score is the cost of "
            "the work on spot machines that never go, divided by the mean cost over "
            f"{len(self._journeys)} traces of what was available; the mean counts over {len(self.cases)} pairs of "
            f"deadline and restart time. {self.rules}"
        )

    def told(self, journeys: Sequence[Sequence[Trace]]) -> Mapping[str, JSON]:
        return {"traces": [[*trace] for (trace,) in journeys]}

    def travel(self, journey: list[Trace], job: Mapping[str, float], choose: Chooser) -> tuple[float, int]:
        cost, made = spot.harness_run(journey[0], job, choose)
        return cost, len(made)

    def is_choice(self, choice: JSON, regions: int) -> bool:
        return choice in CHOICES


def drawn_traces(
    traces: int, seed: int, up_hours: Sequence[float] = UP_HOURS, down_hours: Sequence[float] = DOWN_HOURS
) -> list[Trace]:
    """Draw times with and without spot machines. Their lengths are exponential, with means drawn for each trace."""
    check_least(1, traces=traces)
    rng = random.Random(f"spot {seed}")
    found = []
    for _ in range(traces):
        means = {True: rng.choice(up_hours), False: rng.choice(down_hours)}
        up = rng.random() < means[True] / sum(means.values())
        trace: Trace = []
        while len(trace) < STEPS:
            trace += [up] * max(1, round(rng.expovariate(1 / means[up]) * 3600 / STEP))
            up = not up
        found.append(trace[:STEPS])
    return found
