"""What runs of a configuration will take, side by side for several widths, profiles and models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve._util.words import counted
from flowevolve.config.backends import SIMULATED_BACKENDS
from flowevolve.config.run import Config
from flowevolve.core.task import Task
from flowevolve.programs.task import ProgramTask
from flowevolve.runner.forecast.doubts import EXPECTED, Estimate, doubted, estimate
from flowevolve.runner.forecast.limits import Limit
from flowevolve.runner.forecast.measure import read_earlier, run_seed
from flowevolve.runner.forecast.probe import probe as probe_model
from flowevolve.runner.forecast.simulate import Known, Simulated, simulate
from flowevolve.runner.llm import check_roles, make_roles, open_roles
from flowevolve.runner.plan import ProvidedObjects, check_config, make_plan
from flowevolve.sim.profiles import find_profile

SCHEMA = 1
CALLS = 25_000
"""The approximate number of calls that are simulated in total, within the bounds below for each run."""
LEAST_CALLS, MOST_CALLS = 600, 2500
"""The bounds on the calls of each simulated run."""
CODER_SLOWER = 8
"""The CPU time of a call of a simulated coder, which takes programs apart, as a multiple of another model's."""
ALIKE = 0.1
"""Rows that differ by no more than this share count as equal when one is chosen."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run will take with one width, one profile's server and one model."""

    width: int
    profile: str
    model: str | None
    hours: Estimate
    input_tokens: Estimate
    output_tokens: Estimate
    dollars: Estimate | None
    """None where a model has no price."""
    proposals: Estimate
    ends: str
    """Which setting of the budget ends the run, or else the reason why it stops."""
    limit: Limit
    """What limits its speed."""
    in_flight: float
    """The mean number of requests in flight."""
    simulated: float
    """The share of the run's time that was simulated; the rest is extrapolated."""

    def to_json(self) -> dict[str, object]:
        amounts = {name: getattr(self, name) for name in ("hours", "input_tokens", "output_tokens", "proposals")}
        return {
            "width": self.width,
            "profile": self.profile,
            "model": self.model,
            **{name: amount.to_json() for name, amount in amounts.items()},
            "dollars": None if self.dollars is None else self.dollars.to_json(),
            "ends": self.ends,
            "limit": self.limit,
            "in_flight": round(self.in_flight, 2),
            "simulated": round(self.simulated, 4),
        }


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Forecasts for one configuration, and which of them to choose."""

    rows: Sequence[Forecast]
    taken: int
    """The index of the row to choose."""
    because: str
    calls: int
    """The most calls that a simulated run made."""
    measured: bool
    """Whether the lengths of answers were measured."""

    def to_json(self) -> dict[str, object]:
        """As docs/reference/plan.md says."""
        return {
            "schema": SCHEMA,
            "rows": [row.to_json() for row in self.rows],
            "take": self.taken,
            "because": self.because,
            "calls_simulated": self.calls,
            "lengths_measured": self.measured,
        }


def plan(
    config: Config,
    *,
    task: Task | None = None,
    widths: Sequence[int] = (),
    profiles: Sequence[str] = (),
    models: Sequence[str] = (),
    lengths: Path | str | None = None,
    probe: int | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Forecasts:
    """Forecast what a run of a configuration takes (hours, tokens, dollars and proposals), without asking any model.

    ``widths`` are values of ``llm.concurrency``, ``models`` of ``llm.model``, and ``profiles`` names or files of server
    profiles; each combination is a row. What is left out is as in the configuration, but ``profiles`` can only be left
    out if the backend is simulated. ``lengths`` is the directory of an earlier run whose answers were as long as this
    one's will be. Alternatively, lengths are measured on ``probe`` proposals of the real model, which have to be paid
    for. ``note`` is called with lines on what is being done. Blocks, for seconds to a minute, and needs a thread
    without an event loop.

    Raises:
        InputError: if the configuration can't be run or planned.
        BackendUnreachableError, BackendRefusedError: if the model can't be probed.
    """
    if lengths is not None and probe is not None:
        raise InputError(
            "plan: lengths of answers come either from a probe or from the run that lengths names; give one of the two"
        )
    if clock.is_running():
        raise InputError("plan can't be called while an event loop runs, as in a notebook; call it in a thread")
    check_config(config, "plan")
    check_roles(config)
    given = make_plan(config, ProvidedObjects(task), opens_roles=open_roles)  # no key is needed
    named = profiles or _own_profile(config)
    found = [(name, find_profile(name)) for name in named]
    combined = list(product(_widths(widths, config.llm.concurrency), found, models or (config.llm.model,)))
    changed = [_changed(config, width, model) for width, _, model in combined]
    seed_run = None
    if isinstance(given.task, ProgramTask):
        given.task.watch_machines(note)
        seed_run = clock.run(run_seed, given.task, clock="real")
    known = Known(given.task, seed_run)
    if lengths is not None:
        earlier = read_earlier(Path(lengths))
        for difference in dict.fromkeys(
            each for one in changed for each in earlier.unlike(given.task, make_roles(one))
        ):
            note(f"note: --lengths {lengths}: {difference}")
        known = replace(known, lengths=earlier.lengths)
    if probe is not None:
        known = replace(known, lengths=probe_model(config, known, found[0][1], probe, note))
    assumptions = (EXPECTED, *doubted(measured=known.lengths is not None))
    calls = max(LEAST_CALLS, min(MOST_CALLS, CALLS // (len(combined) * len(assumptions))))
    if isinstance(given.task, ProgramTask):
        calls //= CODER_SLOWER
    rows = []
    for number, (one, (width, (name, profile), model)) in enumerate(zip(changed, combined, strict=True), 1):
        note(f"simulating {number} of {len(combined)}: {counted(width, 'request')} in flight, {name}")
        runs = [
            simulate(one, known, profile, assumed, most_calls=calls, seed=seed)
            for seed, assumed in enumerate(assumptions, config.seed + 1)
        ]
        rows.append(_forecast(one, width, name, model, runs))
    taken, because = _choose(rows)
    return Forecasts(rows, taken, because, calls, known.lengths is not None)


def _own_profile(config: Config) -> Sequence[str]:
    if config.llm.backend in SIMULATED_BACKENDS:
        return (config.sim.profile,)
    raise InputError(
        "plan: name a profile of the server that will answer, with --profiles: one of those that `flowevolve list "
        "profiles` shows, or a file with one"
    )


def _widths(given: Sequence[int], own: int) -> Sequence[int]:
    wrong = next((width for width in given if width < 1), None)
    if wrong is not None:
        raise InputError(f"plan: a width is {wrong}, but has to be a number of requests in flight, at least 1")
    return given or (own,)


def _changed(config: Config, width: int, model: str | None) -> Config:
    llm = config.llm.model_copy(update={"concurrency": width, "model": model})
    return config.model_copy(update={"llm": llm})


def _forecast(config: Config, width: int, profile: str, model: str | None, runs: Sequence[Simulated]) -> Forecast:
    """A row from the simulated runs, the first of which is under the expected assumptions, the others under
    alternatives.
    """
    ends = [run.course.when_spent(config.budget) for run in runs]
    (expected, ends_by), course = ends[0], runs[0].course

    def amount(name: str) -> Estimate:
        limit = ends_by.removeprefix("budget.")
        fixed = "seconds" if limit in ("hours", "minutes") else limit
        return estimate([getattr(each, name) for each, _ in ends], fixed=name == fixed)

    return Forecast(
        width=width,
        profile=profile,
        model=model,
        hours=amount("seconds").scaled(1 / 3600),
        input_tokens=amount("input_tokens"),
        output_tokens=amount("output_tokens"),
        dollars=None if math.isnan(expected.dollars) else amount("dollars"),
        proposals=amount("proposals"),
        ends=ends_by,
        limit=runs[0].load.limit(),
        in_flight=runs[0].load.in_flight,
        simulated=min(1.0, course.seconds / expected.seconds) if course.end is None else 1.0,
    )


def _choose(rows: Sequence[Forecast]) -> tuple[int, str]:
    """The row to choose, and why: the narrowest of the cheapest of the rows that are about as fast as the fastest."""

    def speed(row: Forecast) -> float:
        return row.proposals.expected / row.hours.expected if row.hours.expected else math.inf

    def price(row: Forecast) -> float:
        dollars = 0.0 if row.dollars is None else row.dollars.expected
        return dollars / max(1.0, row.proposals.expected)

    fastest = max(map(speed, rows))
    fast = [row for row in rows if speed(row) >= (1 - ALIKE) * fastest]
    least = min(map(price, fast))
    cheap = [row for row in fast if price(row) <= (1 + ALIKE) * least]
    taken = min(cheap, key=lambda row: row.width)
    advice = f"take width {taken.width} on {taken.profile}{'' if taken.model is None else f' with {taken.model}'}"
    pace = f"about {speed(taken):,.0f} proposals an hour" if math.isfinite(speed(taken)) else "no time at all"
    if len(rows) == 1:
        return 0, f"{pace}; compare others with --widths, --profiles and --models"
    beside = "none is cheaper" if price(taken) > 0 and len(fast) > len(cheap) else "none needs fewer requests in flight"
    alone = "no other row is nearly as fast" if len(fast) == 1 else f"of the rows about as fast {beside}"
    return rows.index(taken), f"{advice}: {pace}, and {alone}"
