"""Measures a server, predicts runs on it, and performs these runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from statistics import median

from bench._lib.calibrated import QUANTITIES, calibrated
from bench._lib.methods.figures import Figures, figures
from bench._lib.methods.presets import PRESETS
from bench._lib.methods.process import Job, width
from bench._lib.methods.runs import WARM_UP, Run, Server, execute, serving
from bench._lib.methods.virtual import RecordingBackend, evolve_at
from bench._lib.methods.workloads import WORKLOADS, small
from bench.prediction.known import Known
from bench.prediction.replies import read_exchanges
from flowevolve._util import clock
from flowevolve.sim.calibration.calibrate import Calibration
from flowevolve.sim.profiles import BatchingProfile

METHODS = ("gepa_sync", "gepa_pxn_4x4", "plain", "stream")
RECORDED = ("plain", "stream")
"""The methods of the runs whose replies are recorded, each at `RECORDED_AT`."""
RECORDED_AT = 12
"""The most requests in flight in these runs: a number for which nothing is predicted."""
MOST_TOKENS = 48
"""The most tokens of an answer: the model is small, and two cores are slow."""
RECORDING_SEED, TRIAL_SEED, SEED = 1000, 3000, 0
"""The seeds of the runs whose answers are recorded, of the short runs that tell how long a run must be, and of the runs
that are compared.
"""
ROUNDS = 6
"""How many rounds a run must have time for if its method proposes in rounds, since one more or less is chance."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which runs are compared. Each takes ``seconds`` after its seed is validated, or longer if it needs more time for
    this many ``proposals``.
    """

    workload: str
    concurrencies: Sequence[int]
    seconds: float
    proposals: int = 60
    methods: Sequence[str] = METHODS


@dataclass(frozen=True, slots=True)
class Cell:
    """A method, the most requests in flight, and the seconds of its runs after the seed is validated."""

    method: str
    concurrency: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One run on the real server and its prediction. ``measured`` and ``predicted`` have their values by quantity."""

    method: str
    concurrency: int
    seconds: float
    measured: Mapping[str, float]
    predicted: Mapping[str, float]
    proposals: int
    """The proposals of the real run in its measured window."""

    def errors(self) -> dict[str, float]:
        return {name: self.predicted[name] / self.measured[name] - 1 for name in QUANTITIES if self.measured[name]}


def learn(url: str, model: str, plan: Plan) -> tuple[Calibration, Known]:
    """Measure the server, and record how long its model's answers are."""
    found = clock.run(calibrated, url, model, clock="real")
    assert isinstance(found.profile, BatchingProfile)
    exchanges = []
    with _recorded(url) as server:
        for number, method in enumerate(RECORDED):
            _run(server, Cell(method, RECORDED_AT, plan.seconds), plan, model, RECORDING_SEED + number)
            exchanges += read_exchanges(server.requests())
    return found, Known(found.profile, exchanges)


def cells(known: Known, plan: Plan) -> list[Cell]:
    """The runs to compare. How long each must be is estimated from one short run on the simulated server."""
    short = [Cell(method, most, plan.seconds) for method in plan.methods for most in plan.concurrencies]
    tried = _simulated(known, [(cell, TRIAL_SEED) for cell in short], plan)
    return [
        replace(cell, seconds=seconds_for(proposals_of(cell.method, plan), trial.proposals_per_min, plan.seconds))
        for cell, trial in zip(short, tried, strict=True)
    ]


def proposals_of(method: str, plan: Plan) -> int:
    """How many proposals a method's runs must have time for."""
    if method in PRESETS:
        return plan.proposals
    parents, mutations = width(method)
    return max(plan.proposals, ROUNDS * parents * mutations)


def seconds_for(proposals: int, per_minute: float, least: float) -> float:
    """How many seconds a run must take so that this many proposals are counted at this rate; at least ``least``."""
    return max(least, ceil(60 * proposals / per_minute / (1 - WARM_UP))) if per_minute else least


def predict(known: Known, compared: Sequence[Cell], plan: Plan) -> dict[Cell, Figures]:
    """Run each cell on the simulated server, with the seed of the real run."""
    found = _simulated(known, [(cell, SEED) for cell in compared], plan)
    return dict(zip(compared, found, strict=True))


def _simulated(known: Known, wanted: Sequence[tuple[Cell, int]], plan: Plan) -> list[Figures]:
    """One run on the simulated server for each cell and seed.

    Our methods run on the virtual clock. gepa's run in real time and side by side, because they spend nearly all of the
    time waiting for the server.
    """
    theirs = [(cell, seed) for cell, seed in wanted if cell.method not in PRESETS]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "known.json"
        known.write(file)

        def simulate(job: tuple[Cell, int]) -> Figures:
            with serving(f"{file}", module="bench.prediction.server") as server:
                return _run(server, job[0], plan, "simulated", job[1])

        with ThreadPoolExecutor(len(theirs) or 1) as pool:
            found = dict(zip(theirs, pool.map(simulate, theirs), strict=True))
    return [found[job] if job in found else figures(_virtual(known, plan, *job)) for job in wanted]


def _virtual(known: Known, plan: Plan, cell: Cell, seed: int) -> Run:
    profile, replies = known.model()
    return evolve_at(
        RecordingBackend(profile, replies),
        cell.method,
        small(WORKLOADS[plan.workload]),
        concurrency=cell.concurrency,
        seed=seed,
        seconds=cell.seconds,
        max_tokens=MOST_TOKENS,
    )


def make(url: str, model: str, plan: Plan, predicted: Mapping[Cell, Figures]) -> Iterator[Compared]:
    """Perform the real runs, and compare each with its prediction."""
    with _recorded(url) as server:
        for cell, expected in predicted.items():
            real = _run(server, cell, plan, model, SEED)
            compared = Compared(
                cell.method, cell.concurrency, cell.seconds, _quantities(real), _quantities(expected), real.proposals
            )
            print(compared, compared.errors(), flush=True)
            yield compared


def _quantities(of: Figures) -> dict[str, float]:
    return {name: float(getattr(of, name)) for name in QUANTITIES}


@contextmanager
def _recorded(url: str) -> Iterator[Server]:
    """A recording server in front of the real one, whose answers get the words of `bench.prediction.replies.words`."""
    with serving(url, module="bench.prediction.worded") as worded, serving(worded.url) as server:
        yield server


def _run(server: Server, cell: Cell, plan: Plan, model: str, seed: int) -> Figures:
    job = Job(
        url=server.url,
        model=model,
        workload=plan.workload,
        concurrency=cell.concurrency,
        seed=seed,
        speed=1.0,
        max_tokens=MOST_TOKENS,
        small=True,
    )
    return figures(execute(cell.method, job, server, cell.seconds))


def summary(compared: Sequence[Compared]) -> dict[str, dict[str, float]]:
    """The median and the largest of the absolute errors, for each quantity and over all of them."""
    by_quantity = {
        name: [abs(error) for each in compared for quantity, error in each.errors().items() if quantity == name]
        for name in QUANTITIES
    }
    by_quantity["all"] = [error for errors in by_quantity.values() for error in errors]
    return {name: {"median": median(errors), "worst": max(errors)} for name, errors in by_quantity.items() if errors}


def as_json(each: Compared) -> dict[str, object]:
    return {**asdict(each), "errors": each.errors()}
