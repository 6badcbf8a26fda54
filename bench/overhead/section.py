"""The section of the page on this bench: what the machinery costs."""

from __future__ import annotations

from collections.abc import Mapping

from bench._lib.text import Content, Verdicts, percent, ranged, table, verdict

LEVELS = (1, 64, 512)
RAW, CLIENT, GOAL, KEEPS_NOTHING = (
    "aiohttp alone",
    "our client over aiohttp",
    "engine and client over aiohttp",
    "the same without run directory",
)
RAW_ON_UVLOOP, GOAL_ON_UVLOOP = f"{RAW}, on uvloop", f"{GOAL}, on uvloop"
WAYS = (RAW, CLIENT, GOAL, KEEPS_NOTHING, RAW_ON_UVLOOP, GOAL_ON_UVLOOP, "the SDK alone", "our client over the SDK")
BESIDE_AIOHTTP = "CPU time of a call beside aiohttp alone"
"""What a goal is about."""
MOST_TIMES = 2.5
"""The most that engine and client may cost, as a multiple of aiohttp alone."""
HISTORY = """\
An earlier version took 0.63 ms for engine and client at 512 in flight and 0.34 ms for the client alone. These are
medians of five and four runs, under heavier load than the table's; runs in between of the code after the first
improvement took 0.59 and 0.31 ms. A third of the engine's CPU time went into Python's search for garbage in cycles, and
hundreds of open calls are not garbage. During a run it now searches only after every 250,000 new objects
(`flowevolve/_util/garbage.py`).
"""
GROWTH = """\
The steps of the line at the gate are n log n, because it uses heaps. The rest of its ratio comes from memory that no
longer fits the caches. *The whole engine* is GEPA over the instant server with its run directory. Its rollouts call no
model and score 0 or 1, so half of all candidates tie on every example, and about three in four of those proposed enter
the pool. Where scores tie, the archive used to look at all of them for every selection, so its cost grew as the square.
It now keeps one candidate of each front, the only one that may have to stay.
"""


GROWN = {
    "pool and archive, candidates": "the pool",
    "the same where scores tie": "the pool where scores tie",
    "journal, events": "the journal",
    "accounts and lengths, candidates": "accounts",
    "line at the gate, waiting requests": "waiting requests",
    "the whole engine, candidates": "a run",
}
"""What grows: its name in the result, and words for readers who have not read the page."""


def answer(content: Content) -> str:
    most = content["costs"][f"{GOAL}, {max(LEVELS)} in flight"]["cpu_ms"]
    met = goals(content)[BESIDE_AIOHTTP]
    fewer = ", ".join(f"{_times_aiohttp(content, level):.1f} with {level}" for level in reversed(LEVELS[:-1]))
    return (
        f"with preset `plain` {ranged(most)} ms of CPU time for each call with {max(LEVELS)} calls in flight, "
        f"{_times_aiohttp(content):.1f} times aiohttp alone (goal of at most {MOST_TIMES:g}: {verdict(met)}); {fewer}"
    )


def goals(content: Content) -> Verdicts:
    return {
        BESIDE_AIOHTTP: _times_aiohttp(content) <= MOST_TIMES,
        **{
            f"growing cost of {GROWN.get(name, name)}": _is_within_n_log_n(part)
            for name, part in content["growth"].items()
        },
    }


def _is_within_n_log_n(part: Mapping[str, float]) -> bool:
    """Whether the cost of a part grows no faster than n log n."""
    return part["ratio"] <= part["n_log_n"]


def _times_aiohttp(content: Content, level: int = max(LEVELS)) -> float:
    return _median(content, GOAL, level) / _median(content, RAW, level)


def section(content: Content) -> str:
    return f"""\
# Overhead

    python -m bench.overhead --json bench/results/overhead.json

Time is real here and not simulated. A server that answers at once runs in a process of its own. Our process makes all
calls in one thread, and with a run directory it has a second one that writes it, partly on another core. So there can
be more calls by the clock than the CPU time, which is that of all threads, leaves room for on one core. The engine runs
the real GEPA on a task that costs nothing itself, with the preset `plain` and up to 32 workers a stage; the defaults,
which merge edits and validate them in groups, were not measured. Figures are the median and range of three runs. The
event loop is asyncio's own where nothing else is said. Our client over aiohttp uses aiohttp's connections and its
reader of answers, and writes requests itself: the steps of aiohttp's session, which *aiohttp alone* has in it, take two
thirds of its time.

{_calls(content)}

With one call in flight nothing is shared: each call takes a turn of the event loop of its own, and the start of the run
counts.

{_times(content)}

{_parts(content)}

Each part is the difference of two rows of the table above. What our client costs is what its own steps take beyond
what it saves by doing without aiohttp's session. What the engine costs is a task and the bookkeeping for every rollout,
its item's way through the stages, and their events. What the run directory costs is those events and the calls as rows,
with their checksums, and the wait of each rollout until its reply is on disk. No single piece of code takes more than a
few percent: it is Python's own running of many small steps.

{HISTORY}
{_memory(content)}

{_growth(content)}

{_growth_verdict(content)}

{_engine(content)}

{GROWTH}"""


def _median(content: Content, way: str, level: int = max(LEVELS)) -> float:
    """CPU milliseconds a call."""
    median: float = content["costs"][f"{way}, {level} in flight"]["cpu_ms"]["median"]
    return median


def _has_uvloop(content: Content) -> bool:
    """Whether the bench was also measured on uvloop, unlike in older files."""
    return f"{GOAL_ON_UVLOOP}, {max(LEVELS)} in flight" in content["costs"]


def _times(content: Content) -> str:
    raw, times, met = _median(content, RAW), _times_aiohttp(content), goals(content)[BESIDE_AIOHTTP]
    said = (
        f"A call through engine and client is to cost at most {MOST_TIMES:g} times what it costs over aiohttp alone. "
        f"At {max(LEVELS)} in flight it is\n{times:.1f} times: {verdict(met)}."
    )
    if not _has_uvloop(content):
        return said
    raw_there, there = _median(content, RAW_ON_UVLOOP), _median(content, GOAL_ON_UVLOOP)
    return (
        f"{said} On [uvloop's event loop](../how-to/models.md#less-cpu-time-per-call) it is\n{there / raw:.1f} times "
        f"({verdict(there / raw <= MOST_TIMES)}), and {there / raw_there:.1f} times aiohttp alone on the same loop."
    )


def _parts(content: Content) -> str:
    raw, client, without, whole = (_median(content, way) for way in (RAW, CLIENT, KEEPS_NOTHING, GOAL))
    parts = {
        "aiohttp": raw,
        "our client and its transport": client - raw,
        "the engine with GEPA": without - client,
        "the run directory": whole - without,
        "all": whole,
    }
    rows = [(name, f"{part:.2f}", percent(part / whole)) for name, part in parts.items()]
    return table((f"a call's CPU time, {max(LEVELS)} in flight", "ms", "share"), rows)


def _calls(content: Content) -> str:
    costs, raw = content["costs"], _median(content, RAW)
    rows = []
    for way in WAYS if _has_uvloop(content) else [way for way in WAYS if "uvloop" not in way]:
        at = [costs[f"{way}, {level} in flight"] for level in LEVELS]
        last = at[-1]
        rows.append(
            (
                way,
                *(ranged(each["cpu_ms"]) for each in at),
                f"{last['cpu_ms']['median'] / raw:.1f}",
                f"{last['calls_per_cpu_second']:.0f}",
                f"{last['calls_per_second']['median']:.0f}",
            )
        )
    first, *others = LEVELS
    header = (
        "",
        f"CPU ms a call, {first} in flight",
        *map(str, others),
        f"times aiohttp alone, {others[-1]}",
        f"calls per second of CPU, {others[-1]}",
        f"by the clock, {others[-1]}",
    )
    return table(header, rows)


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
            verdict(_is_within_n_log_n(part)),
        )
        for name, part in content["growth"].items()
    ]
    return table(("what grows", "to n", "CPU time", "cost(10n)/cost(n)", "of n log n", ""), rows)


def _growth_verdict(content: Content) -> str:
    above = [
        f"{name} ({percent(part['ratio'] / part['n_log_n'] - 1)} above it)"
        for name, part in content["growth"].items()
        if not _is_within_n_log_n(part)
    ]
    found = f"missed by {'; '.join(above)}" if above else "met"
    return f"The target is that nothing grows faster than n log n, from a tenth of n to n: {found}."


def _engine(content: Content) -> str:
    sizes = content["growth"]["the whole engine, candidates"]["seconds_at"]
    rows = [(f"{int(size):,}", f"{1000 * seconds / int(size):.2f}") for size, seconds in sizes.items()]
    return table(("candidates proposed in one run", "CPU ms for each, whole engine"), rows)
