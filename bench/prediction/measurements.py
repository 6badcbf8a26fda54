"""Measure a server, predict runs on it, and make these runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

from bench._lib.calibrated import QUANTITIES, calibrated
from bench._lib.methods.figures import Figures, figures
from bench._lib.methods.presets import PRESETS
from bench._lib.methods.process import Job
from bench._lib.methods.runs import Run, Server, execute, serving
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
"""Requests in flight in them: none of the numbers that are predicted."""
MOST_TOKENS = 48
"""The most tokens of an answer: the model is small, and two cores are slow."""
GOAL = {"median": 0.15, "worst": 0.3}
"""How far off predictions may be, as a part of what was measured: in the median, and at worst."""
RECORDING_SEED, PREDICTED_SEED, MEASURED_SEED = 1000, 2000, 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Which runs are compared. ``seconds`` are those of each run after its seed is validated."""

    workload: str
    concurrencies: Sequence[int]
    seconds: float
    methods: Sequence[str] = METHODS
    predictions: int = 3
    """Runs, with seeds of their own, whose mean is a prediction."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One run on the real server beside what was predicted for it. By quantity: values and the relative error."""

    method: str
    concurrency: int
    measured: Mapping[str, float]
    predicted: Mapping[str, float]
    predictions: Mapping[str, Sequence[float]]
    proposals: int
    """Those of the real run in the time that counted."""

    def errors(self) -> dict[str, float]:
        return {name: self.predicted[name] / self.measured[name] - 1 for name in QUANTITIES if self.measured[name]}


def learn(url: str, model: str, plan: Plan) -> tuple[Calibration, Known]:
    """Measure the server, and record what its model answers."""
    found = clock.run(calibrated, url, model, clock="real")
    assert isinstance(found.profile, BatchingProfile)
    exchanges = []
    with serving(url) as server:
        for number, method in enumerate(RECORDED):
            _run(server, method, plan, model, RECORDED_AT, RECORDING_SEED + number)
            exchanges += read_exchanges(server.requests())
    return found, Known(found.profile, exchanges)


def predict(known: Known, plan: Plan, model: str) -> dict[tuple[str, int], list[Figures]]:
    """For each method and number of requests in flight, the runs on the simulated server.

    Ours run on the virtual clock. gepa's run in real time, side by side: they wait for the server nearly all the time.
    """
    cells = [(method, concurrency) for method in plan.methods for concurrency in plan.concurrencies]
    found: dict[tuple[str, int], list[Figures]] = {cell: [] for cell in cells}
    theirs = [cell for cell in cells if cell[0] not in PRESETS for _ in range(plan.predictions)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "known.json"
        known.write(file)

        def simulate(numbered: tuple[int, tuple[str, int]]) -> Figures:
            number, (method, concurrency) = numbered
            with serving(f"{file}", module="bench.prediction.server") as server:
                return _run(server, method, plan, "simulated", concurrency, PREDICTED_SEED + number)

        with ThreadPoolExecutor(len(theirs) or 1) as pool:
            for cell, figure in zip(theirs, pool.map(simulate, enumerate(theirs)), strict=True):
                found[cell].append(figure)
    for method, concurrency in cells:
        if method in PRESETS:
            found[method, concurrency] = [
                figures(_virtual(known, plan, method, concurrency, PREDICTED_SEED + number))
                for number in range(plan.predictions)
            ]
    return found


def _virtual(known: Known, plan: Plan, method: str, concurrency: int, seed: int) -> Run:
    profile, replies = known.model()
    backend = RecordingBackend(profile, replies)
    workload = small(WORKLOADS[plan.workload])
    return evolve_at(
        backend,
        method,
        workload,
        concurrency=concurrency,
        seed=seed,
        seconds=plan.seconds,
        max_tokens=MOST_TOKENS,
    )


def make(
    url: str, model: str, plan: Plan, predicted: Mapping[tuple[str, int], Sequence[Figures]]
) -> Iterator[Compared]:
    """Make the real runs, and compare."""
    with serving(url) as server:
        for (method, concurrency), expected in predicted.items():
            real = _run(server, method, plan, model, concurrency, MEASURED_SEED)
            counted = plan.seconds * 0.8 / 60
            values = {name: [float(getattr(each, name)) for each in expected] for name in QUANTITIES}
            compared = Compared(
                method,
                concurrency,
                {name: float(getattr(real, name)) for name in QUANTITIES},
                {name: fmean(values[name]) for name in QUANTITIES},
                values,
                round(real.proposals_per_min * counted),
            )
            print(compared, compared.errors(), flush=True)
            yield compared


def _run(server: Server, method: str, plan: Plan, model: str, concurrency: int, seed: int) -> Figures:
    job = Job(
        url=server.url,
        model=model,
        workload=plan.workload,
        concurrency=concurrency,
        seed=seed,
        speed=1.0,
        max_tokens=MOST_TOKENS,
        small=True,
    )
    return figures(execute(method, job, server, plan.seconds))


def summary(compared: Sequence[Compared]) -> dict[str, dict[str, float]]:
    """The median and the worst size of the errors, for each quantity and over all of them."""
    by_quantity = {
        name: [abs(error) for each in compared for quantity, error in each.errors().items() if quantity == name]
        for name in QUANTITIES
    }
    by_quantity["all"] = [error for errors in by_quantity.values() for error in errors]
    return {name: {"median": median(errors), "worst": max(errors)} for name, errors in by_quantity.items() if errors}


def as_json(each: Compared) -> dict[str, object]:
    return {**asdict(each), "errors": each.errors()}
