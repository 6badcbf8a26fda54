"""What the simulator says that the same runs come to: with the profile that was measured on the server before them, and
with the one that is shipped for an H100.

The server's words were the simulated world's already, so what is compared is its speed.
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
"""Of the predicted runs: none of those that were measured."""
SLOWED = 1 / 4
"""At which part of a workload's usual speed gepa's own processes are predicted, several windows in a minute."""


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
    """What a prediction needs of a result: which runs were made, and the profile. What was measured is not read."""

    rows: Sequence[Row]
    settings: Settings
    profile: BatchingProfile | None


@dataclass(frozen=True, slots=True)
class Before:
    """What a result takes over from predictions that were made before its runs: these, and the server's profile."""

    profile: BatchingProfile
    predicted: Sequence[Prediction]


@dataclass(frozen=True, slots=True)
class Prediction:
    """By quantity, what the runs of each seed come to."""

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
    """Ours on the virtual clock, gepa's in real time on a server that is sped up."""
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
