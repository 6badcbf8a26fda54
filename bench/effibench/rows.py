"""The runs of all rows, and the means of their figures."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import Config, parse_config
from flowevolve.config.table import override
from flowevolve.problems.effibench import EffiBenchRow
from flowevolve.problems.rows import read_rows
from flowevolve.runner.run import run

RATIOS = ("et", "mp", "mi")
"""The reference's time, peak memory and memory-time integral, each divided by the program's (CSE, appendix B)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one row: its ratios, or why it could not be run."""

    id: str
    ratios: Mapping[str, float]
    error: str | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.id}: not run: {self.error}"
        return f"{self.id}: " + ", ".join(f"{name} {self.ratios[name]:.2%}" for name in RATIOS)


def numbers(chosen: str | None, data: Path) -> range:
    """The numbers of all rows, or of those that ``chosen`` gives as ``A`` or ``A-B``.

    Raises:
        InputError: if there are no such rows.
    """
    count = len(read_rows(data, EffiBenchRow))
    if chosen is None:
        return range(1, count + 1)
    first, _, last = chosen.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or not 1 <= int(first) <= int(last or first) <= count:
        raise fe.InputError(f"--rows: {chosen!r}: give a number or A-B, from 1 to {count}")
    return range(int(first), int(last or first) + 1)


def perform(config: Path, data: Path, row: int, out: Path, overrides: Sequence[str]) -> Outcome:
    """Run a row, or resume its run unless that has already ended, and read its result.

    Raises:
        InputError: if the configuration file can't be used.
    """
    folder = out / f"row_{row}"
    if not (folder / "result.json").is_file():
        made = configured(config, {"problem": "effibench", "data": str(data.resolve()), "row": row}, overrides)
        try:
            if folder.exists():
                clock.run(fe.resume, folder, clock=made.clock)
            else:
                clock.run(partial(run, made, out=folder), clock=made.clock)
        except fe.FlowevolveError as error:
            return Outcome(f"row {row}", {}, str(error))
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    metrics = (result["best"] or {}).get("metrics") or {}
    return Outcome(f"row {row}", {name: float(metrics.get(name, 0.0)) for name in RATIOS})


def configured(config: Path, task: Mapping[str, object], overrides: Sequence[str]) -> Config:
    """The configuration of a file, with ``task`` in place of its own task.

    Raises:
        InputError: if the file holds no configuration.
    """
    try:
        table: dict[str, object] = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise fe.InputError(f"{config}: can't be read as TOML: {error}") from error
    table["task"] = {"name": "program", **task}
    for each in overrides:
        override(table, each)
    return parse_config(table, str(config))


def means(outcomes: Sequence[Outcome]) -> str:
    """A line of CSE's table 1, over the rows that could be run."""
    ran = [outcome for outcome in outcomes if outcome.error is None]
    if not ran:
        return "no row could be run"
    figures = ", ".join(f"{name.upper()} {fmean(outcome.ratios[name] for outcome in ran):.2%}" for name in RATIOS)
    right = sum(outcome.ratios["mi"] > 0 for outcome in ran)
    return f"{figures} over {len(ran)} rows, of which {right} were solved; {len(outcomes) - len(ran)} could not be run"
