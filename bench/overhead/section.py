"""The section of the page on this bench: what the machinery costs."""

from __future__ import annotations

from bench._lib.text import Content, percent, ranged, table, verdict

LEVELS = (1, 64, 512)
WAYS = (
    "aiohttp alone",
    "our client over aiohttp",
    "engine and client over aiohttp",
    "the same without run directory",
    "the SDK alone",
    "our client over the SDK",
)
HISTORY = """\
An earlier version took 0.63 ms for engine and client at 512 in flight and 0.34 ms for the client alone. These are
medians of five and four runs, under heavier load than the table's; runs in between of the code after the first
improvement took 0.59 and 0.31 ms. A third of the engine's CPU time went into Python's search for garbage in cycles, and
hundreds of open calls are not garbage. During a run it now searches only after every 50,000 new objects
(`flowevolve/_util/garbage.py`). About a third of what is left is aiohttp. The rest is a task with its bookkeeping for
every rollout, and the event loop's own work.
"""
GROWTH = """\
The steps of the line at the gate are n log n, because it uses heaps. The rest of its ratio comes from memory that no
longer fits the caches. *The whole engine* is GEPA over the instant server with its run directory. Its rollouts call no
model and score 0 or 1, so half of all candidates tie on every example, and about three in four of those proposed enter
the pool. Where scores tie, the archive used to look at all of them for every selection, so its cost grew as the square.
It now keeps one candidate of each front, the only one that may have to stay.
"""


def answer(content: Content) -> str:
    most = max(LEVELS)
    cpu = content["costs"][f"engine and client over aiohttp, {most} in flight"]["cpu_ms"]
    return f"{ranged(cpu)} ms of CPU time for each call, with {most} calls in flight"


def section(content: Content) -> str:
    return f"""\
# Overhead

    python -m bench.overhead --json bench/results/overhead.json

Time is real here and not simulated. A server that answers at once runs in a process of its own, and everything else
runs on one core. The engine runs the real GEPA on a task that costs nothing itself. CPU time is that of our process,
with all its threads. Figures are the median and range of three runs.

{_calls(content)}

{_targets(content)} With one call in
flight nothing is shared: each call takes a turn of the event loop of its own, and the start of the run counts.

{HISTORY}
{_memory(content)}

{_growth(content)}

{_growth_verdict(content)}

{_engine(content)}

{GROWTH}"""


def _calls(content: Content) -> str:
    costs = content["costs"]
    rows = []
    for way in WAYS:
        at = [costs[f"{way}, {level} in flight"] for level in LEVELS]
        last = at[-1]
        rows.append(
            (
                way,
                *(ranged(each["cpu_ms"]) for each in at),
                f"{last['calls_per_cpu_second']:.0f}",
                f"{last['calls_per_second']['median']:.0f}",
            )
        )
    first, *others = LEVELS
    header = (
        "",
        f"CPU ms a call, {first} in flight",
        *map(str, others),
        f"calls per second of CPU, {others[-1]}",
        f"by the clock, {others[-1]}",
    )
    return table(header, rows)


def _targets(content: Content) -> str:
    targets, most = content["targets"], max(LEVELS)
    cpu, rate = content["cpu_ms_per_call"], content["calls_per_second"]
    wanted, wanted_rate = targets["cpu_ms_per_call"], targets["calls_per_second"]
    return (
        f"The targets for engine and client at {most} in flight are {wanted:g} ms of CPU time a call ({cpu:.2f}: "
        f"{verdict(cpu <= wanted)}) and\n{wanted_rate:,.0f} calls a second by the clock "
        f"({rate:,.0f}: {verdict(rate >= wanted_rate)})."
    )


def _memory(content: Content) -> str:
    idle = content["rss_mb_idle"]
    rows = [(f"{int(level):,}", f"{needed:.0f}", f"{needed - idle:.0f}") for level, needed in content["rss_mb"].items()]
    return table(("calls of the engine in flight", "MB of the process, peak", "beyond the idle process"), rows)


def _growth(content: Content) -> str:
    rows = [
        (
            name,
            f"{part['n']:,}",
            f"{part['seconds']:.1f} s",
            f"{part['ratio']:.1f}",
            f"{part['n_log_n']:.1f}",
            verdict(part["ratio"] <= part["n_log_n"]),
        )
        for name, part in content["growth"].items()
    ]
    return table(("what grows", "to n", "CPU time", "cost(10n)/cost(n)", "of n log n", ""), rows)


def _growth_verdict(content: Content) -> str:
    above = [
        f"{name} ({percent(part['ratio'] / part['n_log_n'] - 1)} above it)"
        for name, part in content["growth"].items()
        if part["ratio"] > part["n_log_n"]
    ]
    found = f"missed by {'; '.join(above)}" if above else "met"
    return f"The target is that nothing grows faster than n log n, from a tenth of n to n: {found}."


def _engine(content: Content) -> str:
    sizes = content["growth"]["the whole engine, candidates"]["seconds_at"]
    rows = [(f"{int(size):,}", f"{1000 * seconds / int(size):.2f}") for size, seconds in sizes.items()]
    return table(("candidates proposed in one run", "CPU ms for each, whole engine"), rows)
