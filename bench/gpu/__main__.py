"""Throughput on a real GPU: synchronous gepa, its PxN mode, and ours in lockstep and as a stream, on one server.

    python -m bench.gpu [--engine vllm|transformers] [--environment FOLDER] [--model NAME] [--json FILE] [-- FLAGS]

Starts the server, lets each method work for the same time in random order, and samples the GPU meanwhile. With --model
the model is a trained one and says what it says, as long as it likes. Without, it has the shape of Qwen3-8B and random
weights, made on the spot, and every answer has the length and the words that the simulated world draws for the request:
the same for all methods. What comes after -- are flags of the server.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread

from bench._lib.environment import environment
from bench._lib.methods.process import CEILING, METHODS, Job
from bench._lib.methods.ratios import as_json, ratios, row
from bench._lib.methods.runs import Figures, Server, execute, figures, serving
from bench._lib.methods.workloads import WORKLOADS, WholeLength
from bench._lib.paths import ROOT
from bench.gpu.engine import SHAPE, Wanted, engine, make_shape
from bench.gpu.service import Engine, worded
from bench.gpu.watch import Watch, gpu_name, watch_gpu
from flowevolve.errors import FlowevolveError

COMPARED = ("gepa_sync", "gepa_pxn_4x4", "sync", "stream", CEILING)
PROFILE = "qwen3-8b-h100"
"""Whose output lengths the workloads are forced to."""
MOST_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Measured:
    """One method, once. ``gpu``: what the GPU said meanwhile, if there is one that does."""

    figures: Figures
    gpu: dict[str, float] | None


Found = dict[tuple[str, str], list[Measured]]
"""By workload and method, one per repeat."""


async def measure(arguments: argparse.Namespace, wanted: Wanted) -> Found:
    """All methods on all workloads on one server."""
    found: Found = defaultdict(list)
    async with engine(wanted) as running, watch_gpu() as watch:
        for workload in arguments.workloads:
            async with _offered(running, wanted, workload) as url:
                with serving(url) as server:
                    await _compare(arguments, workload, (server, running.model), watch, found)
    return found


@asynccontextmanager
async def _offered(running: Engine, wanted: Wanted, workload: str) -> AsyncGenerator[str]:
    """The base URL that methods are given: the server itself, or the world's words at its speed."""
    if wanted.model is not None:
        yield running.url
        return
    lengths = WORKLOADS[workload].outputs[PROFILE]
    async with worded(running, WholeLength(lengths.median, lengths.sigma, MOST_TOKENS)) as url:
        yield url


async def _compare(
    arguments: argparse.Namespace, workload: str, place: tuple[Server, str], watch: Watch, found: Found
) -> None:
    """Every method so many times, in random order each time. ``place``: a server, and the model's name there."""
    server, model = place
    for repeat in range(arguments.repeats):
        methods = list(arguments.methods)
        Random(f"{workload}/{repeat}").shuffle(methods)
        for method in methods:
            job = Job(
                url=server.url,
                model=model,
                workload=workload,
                concurrency=arguments.concurrency,
                seed=repeat,
                speed=1.0,
                max_tokens=MOST_TOKENS if arguments.model is not None else None,
                small=False,
            )
            run = await anyio.to_thread.run_sync(execute, method, job, server, 60 * arguments.minutes)
            ended = anyio.current_time()
            measured = Measured(figures(run), watch.between(ended - (run.end - run.start), ended))
            print(_line(workload, method, measured), flush=True)
            found[workload, method].append(measured)


def _line(workload: str, method: str, measured: Measured) -> str:
    busy = "no GPU" if measured.gpu is None else f"GPU {measured.gpu['utilization_percent']:.0f} %"
    came_to = measured.figures
    return (
        f"{workload:10} {method:14} {came_to.proposals_per_min:7.2f} proposals/min "
        f"{came_to.output_tokens_per_s:8.0f} tokens/s {came_to.mean_in_flight:6.1f} in flight  {busy}"
    )


def content(found: Found, arguments: argparse.Namespace, wanted: Wanted) -> dict[str, object]:
    """The result file."""
    about = environment()
    machine = about.pop("machine")
    assert isinstance(machine, dict)
    runs = {key: [each.figures for each in measured] for key, measured in found.items()}
    return {
        "rows": [
            {**row(wanted.dialect, *key, runs[key]), "gpu": [each.gpu for each in measured]}
            for key, measured in sorted(found.items())
        ],
        **as_json(ratios("gpu", runs)),
        "simulated": False,
        "settings": {
            "engine": wanted.dialect,
            "model": wanted.model,
            "shape": None if wanted.model is not None else wanted.shape.name,
            "flags": list(wanted.flags),
            "minutes": arguments.minutes,
            "concurrency": arguments.concurrency,
            "repeats": arguments.repeats,
        },
        "machine": {**machine, "gpu": gpu_name()},
        **about,
    }


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["vllm", "transformers"], default="vllm")
    parser.add_argument("--environment", default="vllm", help="the folder of the environment the server is in")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--model", help="trained weights: a folder, or a name that the server can load")
    what.add_argument("--shape", type=Path, default=SHAPE, help="a folder with another model's configuration")
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), default=["ifbench", "hover"])
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, CEILING], default=list(COMPARED))
    parser.add_argument("--minutes", type=float, default=5.0, help="for each method, once its seed is validated")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=256, help="requests in flight at most, for every method")
    parser.add_argument("--log", type=Path, default=ROOT / "runs" / "gpu-server.log", help="what the server says")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("flags", nargs="*", help="after --: flags of the server")
    return parser.parse_args(arguments)


def wanted_of(arguments: argparse.Namespace) -> Wanted:
    return Wanted(
        arguments.engine,
        arguments.environment,
        arguments.model,
        arguments.shape,
        tuple(arguments.flags),
        arguments.log,
    )


def main(given: Sequence[str]) -> int:
    arguments = parse(given)
    wanted = wanted_of(arguments)
    try:
        arguments.log.parent.mkdir(parents=True, exist_ok=True)
        make_shape(wanted)
        found = anyio.run(measure, arguments, wanted)
    except FlowevolveError as error:
        print(error, file=sys.stderr)
        return 2
    made = content(found, arguments, wanted)
    print(json.dumps(made["ratios"], indent=2))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
