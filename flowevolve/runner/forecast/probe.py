"""A short real run that measures how long answers are: a few proposals on a few rows, by the model that will answer."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from flowevolve._util import clock
from flowevolve._util.words import counted
from flowevolve.config.run import Config
from flowevolve.core.budget import Budget
from flowevolve.core.task import Dataset, Task
from flowevolve.programs.task import ProgramTask
from flowevolve.runner.forecast.doubts import EXPECTED
from flowevolve.runner.forecast.measure import read_earlier
from flowevolve.runner.forecast.simulate import Known, simulate
from flowevolve.runner.run import Watchers, run
from flowevolve.sim.lengths import MeasuredLengths
from flowevolve.sim.profiles import Profile

ROWS = 8
"""The number of rows that are used of each split."""
AT_MOST = 3
"""The most tokens that a probe may use, as a multiple of the expected number."""


def probe(
    config: Config, known: Known, profile: Profile, proposals: int, note: Callable[[str], None]
) -> MeasuredLengths:
    """Have the configuration's own model make some proposals. ``note`` is first called with how many tokens that may
    take.

    Raises:
        InputError, BackendUnreachableError, BackendRefusedError: as a run.
    """
    small = _few_rows(known.task)
    short = config.model_copy(update={"budget": Budget(proposals=proposals), "held_out": False, "watch": False})
    foretold = simulate(short, replace(known, task=small), profile, EXPECTED, most_calls=100_000, seed=config.seed)
    tokens, _ = foretold.course.when_spent(short.budget)
    most = AT_MOST * round(tokens.tokens)
    note(
        f"probing: {counted(proposals, 'proposal')} on few rows, about {tokens.tokens:,.0f} tokens and {most:,} at most"
    )
    capped = short.model_copy(update={"budget": Budget(proposals=proposals, tokens=most)})
    with TemporaryDirectory() as folder:
        out = Path(folder, "probe")
        result = clock.run(
            partial(run, capped, task=small, out=out, watchers=Watchers(notes=(note,))), clock=config.clock
        )
        note(f"the probe took {result.llm.usage.total_tokens:,} tokens in {counted(result.llm.requests, 'call')}")
        return read_earlier(out).lengths


def _few_rows(task: Task) -> Task:
    """The same task with only the first of its rows. A task of programs stays as it is, as its cases cost no tokens."""
    if isinstance(task, ProgramTask):
        return task
    small, data = copy(task), task.data
    object.__setattr__(small, "data", Dataset(data.train[:ROWS], data.val[:ROWS]))
    return small
