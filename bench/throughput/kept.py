"""Keeps runs in a folder, so that an interrupted bench can continue where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from bench._lib.history import last_change
from bench._lib.measured import METHODS, OTHERS
from bench._lib.methods.figures import Figures
from bench._lib.methods.process import CEILING, OURS
from bench._lib.methods.runs import Run

Project = Literal["ours", "others"]
"""Whose method it is: this project's, or one of other projects."""
_BENCH = ("bench/throughput/measurements.py", "bench/throughput/kept.py")
DECISIVE: Mapping[Project, Sequence[str]] = {"ours": (*METHODS, *_BENCH), "others": (*OTHERS, *_BENCH)}
"""The paths, as git pathspecs, of the code that decides a run and what is kept of it."""
DRAWN_SECONDS = 60.0
"""Requests of this many seconds of a run are kept, from where rates begin to be taken. They are for drawing only."""
_MEASURED = TypeAdapter(tuple[Run, Figures])


def project_of(method: str) -> Project:
    """Whose method it is. Load without end is ours, because it asks again what the stream has asked."""
    return "ours" if method in (*OURS, CEILING) else "others"


def codes() -> Mapping[Project, str]:
    """The last commits that changed what is `DECISIVE`."""
    return {project: last_change(paths) for project, paths in DECISIVE.items()}


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of one method. ``seconds`` are the server's own; ``url`` is None if the server is simulated."""

    server: str
    workload: str
    method: str
    seed: int
    seconds: float
    concurrency: int
    clock: Literal["real", "virtual"]
    url: str | None = None


def drawn(run: Run) -> Run:
    """The run with only those of its requests that charts show."""
    until = run.start + DRAWN_SECONDS
    return replace(run, spans=tuple(span for span in run.spans if span.ended > run.start and span.begun < until))


class KeptRuns:
    """The runs in ``folder`` (None keeps nothing) that were made with the same code: ``made_with`` is what `codes`
    returns.
    """

    def __init__(self, folder: Path | None, made_with: Mapping[Project, str]) -> None:
        self._folder = folder
        self._codes = made_with
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def has(self, trial: Trial) -> bool:
        file = self._file(trial)
        return file is not None and file.exists()

    def read(self, trial: Trial) -> tuple[Run, Figures]:
        """A run for which `has` is true."""
        file = self._file(trial)
        assert file is not None
        return _MEASURED.validate_json(file.read_bytes())

    def write(self, trial: Trial, measured: tuple[Run, Figures]) -> tuple[Run, Figures]:
        """Keep a run, and return it."""
        if (file := self._file(trial)) is not None:
            part = file.with_suffix(".part")  # so that a half-written file doesn't count as a run
            part.write_bytes(_MEASURED.dump_json(measured))
            part.rename(file)
        return measured

    def _file(self, trial: Trial) -> Path | None:
        """The file of a run, whose name has a hash of all that the run depends on; None if nothing is kept."""
        if self._folder is None:
            return None
        made = f"{self._codes[project_of(trial.method)]} {json.dumps(asdict(trial))}"
        key = blake2b(made.encode(), digest_size=6).hexdigest()
        return self._folder / f"{trial.server}-{trial.workload}-{trial.method}-{trial.seed}-{key}.json"
