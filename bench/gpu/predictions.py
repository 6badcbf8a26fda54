"""Predicts the same runs with the simulator: with the profile that was measured on the server before them, and with the
one that ships for an H100.

The real server's words came from the simulated world, too, so only its speed is compared.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from bench._lib.calibrated import QUANTITIES
from bench._lib.methods.figures import Figures, figures
from bench._lib.methods.presets import PRESETS
from bench._lib.methods.process import CEILING, Job
from bench._lib.methods.runs import execute, serving
from bench._lib.methods.virtual import evolve
from bench._lib.methods.workloads import WORKLOADS
from bench.gpu.runs import PROFILE
from flowevolve._util.errors import InputError
from flowevolve.sim.profiles import BatchingProfile

PREDICTED = (*QUANTITIES, "best_score")
"""The figures of a run that are predicted."""
SEEDS = range(2000, 2005)
"""The seeds of the predicted runs, which differ from those of the measured runs."""
SLOWED = 1 / 4
"""The part of a workload's usual speed at which gepa's own processes are predicted: still several windows a minute."""


@dataclass(frozen=True, slots=True)
class Row:
    workload: str
    method: str


@dataclass(frozen=True, slots=True)
class Settings:
    minutes: float
    concurrency: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a prediction needs of a result: which runs there are, and the profile. It doesn't read what was measured."""

    rows: Sequence[Row]
    settings: Settings
    profile: BatchingProfile | None


@dataclass(frozen=True, slots=True)
class Before:
    """What a result takes over if predictions were made before its runs: the predictions and the server's profile."""

    profile: BatchingProfile
    predicted: Sequence[Prediction]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predictions of one method's runs. ``values`` has one value for each seed, by quantity."""

    profile: str
    workload: str
    method: str
    values: dict[str, list[float]]


_RESULT = TypeAdapter(Result)
_BEFORE = TypeAdapter(Before)


def read_before(path: Path) -> Before:
    """The predictions in a file that `add_predictions` has completed.

    Raises:
        InputError: if it has none, or can't be read.
    """
    try:
        return _BEFORE.validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: has no predictions; make them with --predict ({error})") from error


def add_predictions(path: Path) -> list[Prediction]:
    """Predict the runs in a result file, and write the predictions into it.

    Raises:
        InputError: if it can't be read, or has no profile.
    """
    try:
        raw = path.read_bytes()
        result, content = _RESULT.validate_json(raw), json.loads(raw)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a result of this command ({error})") from error
    if result.profile is None:
        raise InputError(f"{path}: its server was not measured; run the bench without --no-calibration")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        measured = Path(folder) / "measured.json"
        measured.write_text(json.dumps(asdict(result.profile)), encoding="utf-8")
        for named, profile in (("measured", f"{measured}"), ("shipped", PROFILE)):
            for row in result.rows:
                runs = list(_runs(profile, row, result.settings))
                values = {name: [float(getattr(each, name)) for each in runs] for name in PREDICTED}
                found.append(Prediction(named, row.workload, row.method, values))
                print(found[-1], flush=True)
    path.write_text(json.dumps({**content, "predicted": [asdict(each) for each in found]}, indent=1) + "\n", "utf-8")
    return found


def _runs(profile: str, row: Row, settings: Settings) -> Iterator[Figures]:
    """Perform a run for each seed: our methods' on the virtual clock, gepa's in real time on a sped-up server."""
    seconds = 60 * settings.minutes
    speed = WORKLOADS[row.workload].speeds[PROFILE] * SLOWED
    for seed in SEEDS:
        if row.method in (*PRESETS, CEILING):
            run = evolve(
                row.method, profile, row.workload, concurrency=settings.concurrency, seed=seed, seconds=seconds
            )
        else:
            with serving("sim", profile, row.workload, f"{speed}") as server:
                job = Job(server.url, "simulated", row.workload, settings.concurrency, seed, speed, None, small=False)
                run = execute(row.method, job, server, seconds / speed)
        yield figures(run)
