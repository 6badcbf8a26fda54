"""What the machinery costs: CPU time and calls a second, memory in flight, and how costs grow with a run's length.

    python -m bench.overhead [--quick] [--json FILE]

The server answers at once and runs in a process of its own; CPU time is that of the calling process, all its threads
together. So what is measured is the client, the engine and the libraries under them, on one core.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path

from bench import overhead_calls as calls
from bench.instant_server import instant_server
from bench.overhead_growth import PARTS, Grow
from bench.stats import as_json, environment, spread
from flowevolve import clock
from flowevolve.collector import seldom

WAYS: dict[str, calls.Measure] = {
    "aiohttp alone": calls.plain_aiohttp,
    "our client over aiohttp": calls.our_client,
    "engine and client over aiohttp": calls.engine,
    "the same without run directory": calls.engine_without_directory,
    "the SDK alone": calls.plain_sdk,
    "our client over the SDK": calls.our_client_over_sdk,
}
LEVELS = {1: 400, 64: 3000, 512: 6000}
"""Calls in flight, and how many are made in all."""
IN_FLIGHT = (100, 1000, 10_000)
TARGET_MS, TARGET_PER_SECOND = 0.6, 1500.0
"""For engine and client at the highest level."""
GOAL = "engine and client over aiohttp"

Figures = dict[str, object]


def costs(url: str, repeats: int, share: int) -> dict[str, Figures]:
    """Per way and level: CPU milliseconds a call and calls a second, and calls per second of CPU time."""
    found: dict[str, Figures] = {}
    for in_flight, number in LEVELS.items():
        measured: dict[str, list[calls.Cost]] = {name: [] for name in WAYS}
        for _ in range(repeats):
            for name, way in WAYS.items():
                measured[name].append(clock.run(way, url, number // share, in_flight))
        for name, each in measured.items():
            cpu, rate = spread([cost.cpu_ms for cost in each]), spread([cost.calls_per_second for cost in each])
            found[f"{name}, {in_flight} in flight"] = {
                "cpu_ms": as_json(cpu),
                "calls_per_second": as_json(rate),
                "calls_per_cpu_second": 1000 / cpu.median,
            }
            print(
                f"{name:32} {in_flight:5} in flight  {cpu.median:6.3f} ms CPU a call ({cpu.low:.3f} to {cpu.high:.3f})"
                f"  {1000 / cpu.median:6.0f} calls per second of CPU, {rate.median:6.0f} by the clock",
                flush=True,
            )
    return found


def memory(levels: Sequence[int]) -> dict[str, float]:
    """MiB beyond what the process had before, with so many calls of the engine in flight at once."""
    found = {}
    for in_flight in levels:
        with instant_server(gather=in_flight) as url:
            found[str(in_flight)] = _in_child(url, in_flight)
        print(f"{in_flight:6} in flight  {found[str(in_flight)]:8.1f} MiB", flush=True)
    return found


def growth(share: int) -> dict[str, Figures]:
    """Per part: seconds of CPU time at n and 10 n, their ratio, and that of n log n."""
    found: dict[str, Figures] = {}
    for name, (grow, most) in PARTS.items():
        large = most // share
        small = large // 10
        seconds = {size: _seconds(grow, size) for size in (small, large)}
        ratio, allowed = seconds[large] / seconds[small], 10 * math.log(large) / math.log(small)
        found[name] = {"n": large, "seconds": seconds[large], "ratio": ratio, "n_log_n": allowed}
        print(f"{name:36} {large:9}  {seconds[large]:7.2f} s  cost(10n)/cost(n) {ratio:5.1f}, n log n {allowed:.1f}")
    return found


def _seconds(grow: Grow, size: int) -> float:
    with seldom():  # as in a run
        return min(grow(size) for _ in range(2))


def _in_child(url: str, in_flight: int) -> float:
    """In a process of its own, as a process gives little memory back."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_measure_memory, args=(theirs, url, in_flight))
    process.start()
    theirs.close()  # else a child that dies would leave us waiting
    needed = float(ours.recv())
    process.join()
    return needed


def _measure_memory(pipe: Connection, url: str, in_flight: int) -> None:
    pipe.send(clock.run(calls.memory, url, in_flight))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="once, and a tenth of the calls and sizes")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    share = 10 if arguments.quick else 1
    with instant_server() as url:
        found = costs(url, 1 if arguments.quick else 3, share)
    most = max(LEVELS)
    goal = found[f"{GOAL}, {most} in flight"]
    print(f"target at {most} in flight: {TARGET_MS} ms and {TARGET_PER_SECOND:.0f} calls per second of CPU")
    content = {
        "costs": found,
        "goal": {**goal, "target_cpu_ms": TARGET_MS, "target_calls_per_second": TARGET_PER_SECOND},
        "memory_mib": memory(IN_FLIGHT[:2] if arguments.quick else IN_FLIGHT),
        "growth": growth(share),
        "simulated": False,
        **environment(),
        "libraries": {name: version(name) for name in ("aiohttp", "openai", "anyio")},
        "cores": os.cpu_count(),
        "date": datetime.now().astimezone().date().isoformat(),
    }
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
