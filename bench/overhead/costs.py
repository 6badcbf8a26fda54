"""All measurements, and the content of the result file."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

from bench._lib.environment import environment
from bench._lib.stats import Spread, spread
from bench.overhead import calls
from bench.overhead.engine import evolve
from bench.overhead.growth import PARTS
from bench.overhead.instant_server import instant_server
from flowevolve._util import clock
from flowevolve._util.garbage import seldom

GOAL, RAW, SDK = "engine and client over aiohttp", "aiohttp alone", "the SDK alone"
WAYS: dict[str, calls.Measure] = {
    RAW: calls.plain_aiohttp,
    "our client over aiohttp": calls.our_client,
    GOAL: calls.engine,
    "the same without run directory": calls.engine_without_directory,
    SDK: calls.plain_sdk,
    "our client over the SDK": calls.our_client_over_sdk,
}
"""The ways to make calls, on asyncio's own event loop."""
ON_UVLOOP = {f"{name}, on uvloop": WAYS[name] for name in (RAW, GOAL)}
"""Two of these ways on uvloop's event loop, which needs the extra ``bench``."""
LEVELS = {1: 400, 64: 3000, 512: 24_000}
"""The levels of calls in flight, each with the number of calls made. The start of a run takes as much as a thousand
calls, but counts for little among the calls of the highest level.
"""
IN_FLIGHT = (100, 1000, 10_000)
TARGET_MS, TARGET_PER_SECOND, TARGET_TIMES = 0.6, 1500.0, 2.5
"""The targets for engine and client at the highest level; the last is its CPU time over that of aiohttp alone."""
WHOLE, CANDIDATES = "the whole engine, candidates", 100_000
Figures = dict[str, object]


@dataclass(frozen=True, slots=True)
class Costs:
    """What calls cost in one way at one level, over the repeats: CPU milliseconds per call, and calls per second of
    wall time.
    """

    cpu_ms: Spread
    rate: Spread

    @property
    def per_cpu_second(self) -> float:
        return 1000 / self.cpu_ms.median

    def to_json(self) -> Figures:
        return {
            "cpu_ms": self.cpu_ms.as_json(),
            "calls_per_second": self.rate.as_json(),
            "calls_per_cpu_second": self.per_cpu_second,
        }


def costs(url: str, repeats: int, share: int) -> dict[str, Costs]:
    """The costs of each way at each level, under the name ``WAY, N in flight``."""
    found: dict[str, Costs] = {}
    ways = {name: (way, name in ON_UVLOOP) for name, way in (WAYS | ON_UVLOOP).items()}
    for in_flight, number in LEVELS.items():
        measured: dict[str, list[calls.Cost]] = {name: [] for name in ways}
        for _ in range(repeats):
            for name, (way, uvloop) in ways.items():
                measured[name].append(clock.run(way, url, number // share, in_flight, uvloop=uvloop))
        for name, each in measured.items():
            cost = Costs(spread([one.cpu_ms for one in each]), spread([one.calls_per_second for one in each]))
            found[f"{name}, {in_flight} in flight"] = cost
            cpu = cost.cpu_ms
            print(
                f"{name:38} {in_flight:5} in flight  {cpu.median:6.3f} ms CPU a call ({cpu.low:.3f} to {cpu.high:.3f})"
                f"  {cost.per_cpu_second:6.0f} calls per second of CPU, {cost.rate.median:6.0f} by the clock",
                flush=True,
            )
    return found


def memory(levels: Sequence[int]) -> tuple[float, dict[str, float]]:
    """The peak memory of a process in MB, before any call and with each level of the engine's calls in flight at
    once.
    """
    idle, found = 0.0, {}
    for in_flight in levels:
        with instant_server(gather=in_flight) as url:
            idle, found[str(in_flight)] = _in_child(url, in_flight)
        print(f"{in_flight:6} in flight  {found[str(in_flight)]:8.1f} MB, {idle:.1f} before", flush=True)
    return idle, found


def growth(url: str, share: int) -> dict[str, Figures]:
    """For each part and for the whole engine: seconds of CPU time at several sizes, the factor by which they grow when
    the size last grows by a factor of 10, and the factor by which n log n grows.
    """
    found = {}
    for name, (grow, most) in PARTS.items():
        large = most // share
        with seldom():  # garbage is collected as seldom as in a run
            seconds = {size: min(grow(size) for _ in range(2)) for size in (large // 10, large)}
        found[name] = _growth(name, seconds)
    large = CANDIDATES // share
    found[WHOLE] = _growth(WHOLE, {size: evolve(url, size) for size in (large // 100, large // 10, large)})
    return found


def _growth(name: str, seconds: Mapping[int, float]) -> Figures:
    small, large = sorted(seconds)[-2:]
    ratio, allowed = seconds[large] / seconds[small], 10 * math.log(large) / math.log(small)
    print(
        f"{name:36} {large:9}  {seconds[large]:7.2f} s  cost(10n)/cost(n) {ratio:5.1f}, n log n {allowed:.1f}",
        flush=True,
    )
    at = {str(size): cost for size, cost in seconds.items()}
    return {"n": large, "seconds": seconds[large], "ratio": ratio, "n_log_n": allowed, "seconds_at": at}


def _in_child(url: str, in_flight: int) -> tuple[float, float]:
    """Measure memory in a process of its own, because a process gives little memory back."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_measure_memory, args=(theirs, url, in_flight))
    process.start()
    theirs.close()  # otherwise recv would wait for ever if the child died
    before, needed = ours.recv()
    process.join()
    return before, needed


def _measure_memory(pipe: Connection, url: str, in_flight: int) -> None:
    pipe.send(clock.run(calls.memory, url, in_flight, uvloop=False))


def measure(quick: bool) -> dict[str, object]:
    """The contents of the result file. The first keys are the figures that matter, at the highest level."""
    share = 10 if quick else 1
    with instant_server() as url:
        found = costs(url, 1 if quick else 3, share)
        grown = growth(url, share)
    most = max(LEVELS)
    idle, needed = memory(IN_FLIGHT)
    goal, raw = (found[f"{name}, {most} in flight"].cpu_ms.median for name in (GOAL, RAW))
    return {
        "cpu_ms_per_call": goal,
        "times_aiohttp": goal / raw,
        "calls_per_second": found[f"{GOAL}, {most} in flight"].rate.median,
        "raw_cpu_ms_per_call": raw,
        "sdk_cpu_ms_per_call": found[f"{SDK}, {most} in flight"].cpu_ms.median,
        "rss_mb": needed,
        "rss_mb_idle": idle,
        "targets": {
            "cpu_ms_per_call": TARGET_MS,
            "calls_per_second": TARGET_PER_SECOND,
            "times_aiohttp": TARGET_TIMES,
        },
        "costs": {name: cost.to_json() for name, cost in found.items()},
        "growth": grown,
        "simulated": False,
        "settings": {"quick": quick, "in_flight": most},
        **environment(),
    }
