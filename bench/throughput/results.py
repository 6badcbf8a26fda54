"""The content of the result file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from bench._lib.environment import environment
from bench._lib.methods.environments import versions
from bench._lib.methods.held_out import ROWS, curve, worths
from bench._lib.methods.presets import ON_REAL_TIME, sections
from bench._lib.methods.process import OURS
from bench._lib.methods.ratios import Ratio, as_json, ratios, row
from bench._lib.methods.workloads import SMALL, WORKLOADS, small
from bench._lib.text import Content
from bench._lib.time_to_score import Row, Rows
from bench.throughput.kept import codes
from bench.throughput.measurements import ASKED_AGAIN, Measured, Measurements, Place, Plan
from bench.throughput.rows import by_server


def content(
    places: Mapping[Place, Measurements], plan: Plan, command: str, before: Content | None = None
) -> dict[str, object]:
    """The content of the result file. It includes the repeats of an earlier result, ``before``."""
    rows: list[Row] = []
    compared: dict[str, Ratio | None] = {}
    for place, on_place in _rows(places, plan, before).items():
        rows += on_place.values()
        compared.update(ratios(place.suffix, on_place))
    made = environment()
    assert isinstance(made["versions"], dict)
    earlier = [] if before is None else [*before.get("earlier", []), {name: before[name] for name in _ABOUT}]
    then: Content = {"real_minutes": 0.0, "real_processes": 1, "fresh": True} if before is None else before["settings"]
    return {
        **made,
        "versions": {**made["versions"], **versions(plan.methods)},
        "simulated": all(place.url is None for place in places),
        "command": command,
        "code": codes(),
        "earlier": earlier,
        "settings": {
            "concurrency": plan.concurrency,
            "seed": plan.seed,
            **plan.counts,
            "minutes": plan.seconds / 60,
            "real_minutes": then["real_minutes"]
            + sum(real_seconds(plan, place, found) for place, found in places.items()) / 60,
            "real_processes": max(plan.real_processes, then["real_processes"]),
            "held_out_rows": ROWS,
            **served(places, plan),
            "fresh": then["fresh"]
            and all(run.fresh for found in places.values() for pairs in found.values() for run, _ in pairs),
        },
        "configurations": {each: sections(each) for each in plan.methods if each in OURS and each not in ON_REAL_TIME},
        "workloads": {name: described(name, places) for name in plan.workloads},
        "rows": rows,
        **as_json(compared),
    }


_ABOUT = ("commit", "date", "machine", "taken")
"""What is kept of an earlier result besides its repeats."""


def _rows(places: Mapping[Place, Measurements], plan: Plan, before: Content | None) -> Mapping[Place, Rows]:
    """The rows of each server, by workload and method. The repeats of an earlier result come before the new ones."""
    known = worths(_texts(places), plan.processes)
    earlier = {} if before is None else by_server(before["rows"])
    found: dict[Place, Rows] = {}
    for place, measured in places.items():
        then = earlier.get(place.name, {})
        found[place] = {
            (workload, method): _row(place, workload, method, measured.get((workload, method), []), known, then)
            for workload, method in sorted(measured.keys() | then.keys())
        }
    return found


def _row(
    place: Place, workload: str, method: str, measured: Sequence[Measured], known: Mapping[str, float], then: Rows
) -> Row:
    repeats = [each for _, each in measured]
    before = then.get((workload, method))
    is_known = place.url is None and all(each.moments for each in repeats)
    held_out = [curve(each, known) for each in repeats] if is_known else []
    if before is not None:
        held_out = [*before["held_out"], *held_out]
    return {**row(place.name, workload, method, repeats, before), "held_out": held_out}


def _texts(places: Mapping[Place, Measurements]) -> Iterator[str]:
    """The candidates whose worth can be computed: those of simulated servers."""
    for place, found in places.items():
        if place.url is None:
            for _, came_to in chain.from_iterable(found.values()):
                yield from (moment.text for moment in came_to.moments)


def served(places: Iterable[Place], plan: Plan) -> dict[str, object]:
    """The settings of the servers: how fast simulated ones run, or what a real one is asked for.

    `bench._lib.methods.recording_server` puts a real server's answer to a reflection into the expected form.
    """
    real = _real(places)
    if real is None:
        return {"speeds": {name: WORKLOADS[name].speeds for name in plan.workloads}}
    return {
        "model": real.model,
        "max_tokens": real.max_tokens,
        "text_share": SMALL if real.small else 1.0,
        "reflections_fenced": True,
        "same_mix": ASKED_AGAIN in plan.methods,
    }


def described(name: str, places: Iterable[Place]) -> dict[str, object]:
    """A workload as it was run. The lengths of answers are known for simulated servers only."""
    given, real = WORKLOADS[name], _real(places)
    workload = small(given) if real is not None and real.small else given
    outputs = {profile: lengths.median for profile, lengths in workload.outputs.items()}
    return {
        "calls": workload.calls,
        "prompt_tokens_median": workload.context.median,
        "output_tokens_median": outputs if real is None else None,
        "validation": workload.validation,
        "source": workload.source,
    }


def _real(places: Iterable[Place]) -> Place | None:
    return next((place for place in places if place.url is not None), None)


def real_seconds(plan: Plan, place: Place, found: Measurements) -> float:
    """How long the runs in real time took, in seconds from the end of their seeds' validations."""
    return sum(
        run.end / run.speed for (_, method), pairs in found.items() if method in plan.real(place) for run, _ in pairs
    )
