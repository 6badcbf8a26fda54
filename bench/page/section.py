"""The section of the page on this bench: what watching costs, and how smooth the page is."""

from __future__ import annotations

from collections.abc import Mapping

from bench._lib.intervals import interval
from bench._lib.stats import Interval, spread
from bench._lib.text import Content, Verdicts, around, percent, ranged, table, verdict

MOST_LOST, LEAST_FRAMES = 0.03, 30.0
"""The goals: at most this share of the calls a second is lost, and at least this many frames are drawn a second."""
CALLS, FRAMES = "calls a second", "frames a second"
"""What the goals are about."""
NOBODY, BROWSERS = "nobody", "three browsers"


def answer(content: Content) -> str:
    return (
        f"{_said(lost(content, BROWSERS))} of its calls a second, where a server that allows "
        f"{_most_a_second(content):.0f} is the limit"
    )


def _most_a_second(content: Content) -> float:
    """How many calls a second the server allows, which is less than the run could make."""
    settings = content["settings"]
    return float(settings["concurrency"] / settings["latency"])


def lost(content: Content, way: str) -> Interval:
    """The share of its calls a second that a run loses when watched like this, from one pair of runs per round."""
    pairs = zip(_of(content, NOBODY, "calls_per_second"), _of(content, way, "calls_per_second"), strict=True)
    return interval([[1 - watched / alone for alone, watched in pairs]])


def goals(content: Content) -> Verdicts:
    slowest = min(view["frames_per_second"] for view in content["frames"]["views"])
    return {CALLS: lost(content, BROWSERS).value <= MOST_LOST, FRAMES: slowest >= LEAST_FRAMES}


def section(content: Content) -> str:
    settings, frames = content["settings"], content["frames"]
    ways = dict.fromkeys(str(run["way"]) for run in content["runs"])
    rows = [
        (
            way,
            ranged(spread(_of(content, way, "calls_per_second")).as_json(), 1),
            ranged(spread(_of(content, way, "cpu_ms_per_call")).as_json(), 2),
            "" if way == NOBODY else _said(lost(content, way)),
        )
        for way in ways
    ]
    header = ("watched by", "calls a second", "ms of CPU time a call", "lost (95 % interval)")
    sizes, met = frames["sizes"], goals(content)
    return f"""\
# The live page

    python -m bench.page --json bench/results/page.json

**What a watched run loses.** A server that takes {settings["latency"]:g} s for every call, whatever the load, answers
a run with {settings["concurrency"]} calls in flight. So there can be {_most_a_second(content):.0f} calls a second at
most, the run has time to spare, and one at full speed may lose more. The run, its server, the process of its page and
the browsers share the cores of one machine. Each way of watching is measured {settings["rounds"]} times, in random
order, for {settings["seconds"]:g} s; figures are the median and the range. The CPU time is that of the run's process
alone. What is lost is the mean of the rounds, with an interval by a bootstrap over them that is widened for few
values.

{table(header, rows)}

The goal, at most {100 * MOST_LOST:g} % lost with three browsers by a run with time to spare, is {verdict(met[CALLS])}.

**How smooth it is.** The page of a run of {sizes["candidates"]:,} candidates, {sizes["calls"]:,} calls and
{sizes["log"]:,} events is drawn {frames["opening"]:.1f} s after it was asked for. Then a mouse wheel is turned over
each view without a pause. A browser without a screen draws at most 60 frames a second.

{table(("view", "s until it is drawn", "frames a second", "longest time between two, ms"), map(_row, frames["views"]))}

The goal, at least {LEAST_FRAMES:g} frames a second in each view, is {verdict(met[FRAMES])}.
"""


def _row(view: Mapping[str, float | str]) -> tuple[str, ...]:
    numbers = (f"{view['opening']:.2f}", f"{view['frames_per_second']:.0f}", f"{view['slowest']:.0f}")
    return str(view["view"]), *numbers


def _of(content: Content, way: str, figure: str) -> list[float]:
    return [float(run[figure]) for run in content["runs"] if run["way"] == way]


def _said(found: Interval) -> str:
    return around(found.as_json(), lambda share: percent(share, 1))
