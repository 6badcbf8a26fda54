"""Runs kept in a file with a line for each, so that a bench that was stopped can go on from there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from bench.programs.runs import Job, Run

_RUN: TypeAdapter[Run] = TypeAdapter(Run)


def read_runs(file: Path) -> list[Run]:
    """The runs in a file, none if there is no file. A last line that was cut off is ignored."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    return [_RUN.validate_json(line) for line in lines]


def keeping(runs: Iterator[Run], file: Path | None) -> Iterator[Run]:
    """Yields the same runs, and writes each to the file as it arrives."""
    if file is None:
        yield from runs
        return
    whole = file.read_text(encoding="utf-8").rpartition("\n")[0] if file.exists() else ""
    with file.open("w", encoding="utf-8") as kept:
        kept.write(f"{whole}\n" if whole else "")
        for run in runs:
            kept.write(json.dumps(asdict(run)) + "\n")
            kept.flush()
            yield run


def left(wanted: Sequence[Job], made: Sequence[Run]) -> list[Job]:
    """The jobs that have no run yet."""
    done = {run.job for run in made}
    return [job for job in wanted if job not in done]
