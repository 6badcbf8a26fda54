"""All measurements of the bench, and the content of its result file."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from statistics import median

from bench._lib.environment import environment
from bench._lib.stats import Spread, spread
from bench.overhead import calls
from bench.overhead.calls import Stopwatch, peak_mb
from bench.overhead.growth import PARTS
from bench.overhead.instant_server import instant_server
from bench.scale import open_calls
from bench.scale.replicas import (
    FLOWS,
    IN_FLIGHT,
    PRESET,
    PROFILE,
    WARM_UP,
    WINDOW,
    WORKLOAD,
    Outage,
    dips,
    serve,
)
from flowevolve._util import clock
from flowevolve._util.garbage import seldom

GOAL, GOAL_REPLICAS = 0.9, 8
"""The share of this many times one replica's tokens per second that this many replicas have to write together."""
REPLICAS = (1, 2, 4, 8, 16, 32, 64)
OPEN = (1000, 10_000, 100_000)
CANDIDATES = (10_000, 100_000, 1_000_000)
REAL = {64: 6000, 512: 20_000, 4096: 20_000}
"""Levels of calls in flight against a server in a process of its own, each with the number of calls made."""
POOL, JOURNAL = "pool and archive, candidates", "journal, events"
OUTAGE = Outage(begins=240.0, ends=300.0)
Figures = dict[str, object]


def measure(seeds: Sequence[int], most: int) -> Figures:
    """Measure everything, with at most ``most`` replicas, and with calls and candidates in proportion to that."""
    share = max(REPLICAS) // most
    real = _real(share)
    rows = _replicas([count for count in REPLICAS if count <= most], seeds)
    per_replica = median(_figure(row, "calls_per_second") / _figure(row, "replicas") for row in rows)
    return {
        "replicas": [{name: _plain(figure) for name, figure in row.items()} for row in rows],
        "defaults": _defaults(seeds),
        "outage": _outage(seeds),
        "open_calls": [_in_process(open_calls.cost, count // share) for count in OPEN],
        "candidates": [_in_process(grow, count // share) for count in CANDIDATES],
        "real": [{name: _plain(figure) for name, figure in row.items()} for row in real],
        "calls_per_second_of_a_replica": per_replica,
        "goal": {"replicas": GOAL_REPLICAS, "share": GOAL},
        "settings": {
            "profile": PROFILE,
            "workload": WORKLOAD,
            "preset": PRESET,
            "in_flight": IN_FLIGHT,
            "flows": FLOWS,
            "warm_up": WARM_UP,
            "window": WINDOW,
            "seeds": len(seeds),
        },
        "simulated": True,
        **environment(),
    }


def _replicas(counts: Sequence[int], seeds: Sequence[int]) -> list[Mapping[str, float | Spread]]:
    begin, end = WARM_UP, WARM_UP + WINDOW
    one = 0.0
    rows: list[Mapping[str, float | Spread]] = []
    for count in counts:
        watch = Stopwatch()
        runs = [serve(count, seed, end) for seed in seeds]
        made = sum(len(spans) for run in runs for spans in run.spans)
        tokens = [run.tokens_per_second(begin, end) for run in runs]
        one = one or median(tokens) / count
        rows.append(
            {
                "replicas": count,
                "tokens_per_second": spread(tokens),
                "share": spread([each / count / one for each in tokens]),
                "calls_per_second": spread([run.calls_per_second(begin, end) for run in runs]),
                "uneven": spread([run.uneven(begin, end) for run in runs]),
                "cpu_ms_with_simulator": 1000 * watch.cpu_seconds() / made,
            }
        )
        print(rows[-1], flush=True)
    return rows


def _defaults(seeds: Sequence[int]) -> Figures:
    """The tokens per second that the defaults write with one replica and with `GOAL_REPLICAS`."""
    begin, end = WARM_UP, WARM_UP + WINDOW
    found = {
        str(count): [serve(count, seed, end, preset="default").tokens_per_second(begin, end) for seed in seeds]
        for count in (1, GOAL_REPLICAS)
    }
    print("defaults", found, flush=True)
    return {count: spread(tokens).as_json() for count, tokens in found.items()}


def _outage(seeds: Sequence[int]) -> Figures:
    seconds = OUTAGE.ends - OUTAGE.begins
    whole = OUTAGE.ends + WARM_UP + seconds
    runs = [serve(GOAL_REPLICAS, seed, whole, outage=OUTAGE) for seed in seeds]
    found = [dips(run, OUTAGE, seconds) for run in runs]
    print("outage", found, flush=True)
    return {
        "seconds": seconds,
        **{name: spread([each[name] / each["before"] for each in found]).as_json() for name in ("away", "after")},
    }


def grow(size: int) -> Mapping[str, float]:
    """Seconds of CPU time for a pool of this many candidates and for a journal of this many events, and the pool's
    memory.
    """
    before = peak_mb()
    with seldom():
        pool = PARTS[POOL][0](size)
        mb = peak_mb() - before
        return {"candidates": size, "pool_seconds": pool, "mb": mb, "journal_seconds": PARTS[JOURNAL][0](size)}


def _real(share: int) -> list[Mapping[str, float | Spread]]:
    rows: list[Mapping[str, float | Spread]] = []
    with instant_server() as url:
        for in_flight, count in REAL.items():
            costs = [clock.run(calls.engine, url, count // share, in_flight) for _ in range(3)]
            rows.append(
                {
                    "in_flight": in_flight,
                    "cpu_ms": spread([cost.cpu_ms for cost in costs]),
                    "calls_per_second": spread([cost.calls_per_second for cost in costs]),
                }
            )
            print(rows[-1], flush=True)
    return rows


def _in_process(function: Callable[[int], Mapping[str, float]], size: int) -> Mapping[str, float]:
    """What a function returns in a process of its own, because a process gives little memory back."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_send, args=(theirs, function, size))
    process.start()
    theirs.close()  # otherwise recv would wait for ever if the child died
    found: Mapping[str, float] = ours.recv()
    process.join()
    print(found, flush=True)
    return found


def _send(pipe: Connection, function: Callable[[int], Mapping[str, float]], size: int) -> None:
    pipe.send(dict(function(size)))


def _figure(row: Mapping[str, float | Spread], name: str) -> float:
    value = row[name]
    return value.median if isinstance(value, Spread) else value


def _plain(figure: float | Spread) -> object:
    return figure.as_json() if isinstance(figure, Spread) else figure
