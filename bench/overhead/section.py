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
Before, at 512 in flight: 0.63 ms for engine and client, 0.34 ms for the client alone (medians of five and four,
taken in turns with the code after the first step, 0.59 and 0.31 ms, under heavier load than the table). A third of
the engine's CPU time was Python looking for garbage in cycles, which hundreds of open calls are not; while a run
goes on it now looks every 50,000 new objects (`flowevolve/_util/garbage.py`). What is left is aiohttp, about a third; a
task and its bookkeeping for every rollout; and the event loop's own work.
"""
GROWTH = """\
The line's steps are n log n (heaps); the rest of its ratio is memory that no longer fits the caches. The whole
engine is GEPA over the instant server with its run directory, on rollouts that call no model and score 0 or 1, so
that half of all candidates tie on every example; about three in four of those proposed enter the pool. Where scores
tie the archive used to look at all of them for every selection, and grew as the square; now it keeps of each front
the one candidate that can have to stay.
"""


def section(content: Content) -> str:
    return f"""\
## Overhead

    python -m bench.overhead --json bench/results/overhead.json

Real time, not simulated: a server that answers at once, in a process of its own, and everything else on one core. The
engine is the real GEPA on a task that costs nothing itself. CPU time is that of our process, all threads together;
median and range of three.

{_calls(content)}

{_targets(content)} With one call in flight
nothing is shared: every call is a turn of the event loop of its own, and starting the run counts.

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
        f"Targets for engine and client at {most} in flight: {wanted:g} ms of CPU a call ({cpu:.2f}: "
        f"{verdict(cpu <= wanted)}), and\n{wanted_rate:,.0f} calls a second by the clock "
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
    return f"Target: nothing grows faster than n log n, from a tenth of n to n: {found}."


def _engine(content: Content) -> str:
    sizes = content["growth"]["the whole engine, candidates"]["seconds_at"]
    rows = [(f"{int(size):,}", f"{1000 * seconds / int(size):.2f}") for size, seconds in sizes.items()]
    return table(("candidates proposed in one run", "CPU ms for each, whole engine"), rows)
