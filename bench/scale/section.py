"""The section of the page on this bench: how far one core process goes."""

from __future__ import annotations

from bench._lib.text import Content, Verdicts, ranged, table, verdict

TOKENS, AWAY = "tokens of many replicas", "tokens while a replica is away"
"""What the goals are about."""


def answer(content: Content) -> str:
    row, preset = _at_goal(content), content["settings"]["preset"]
    return (
        f"on the virtual clock {row['replicas']} replicas write {ranged(row['share'])} of {row['replicas']} times "
        f"one's tokens with preset `{preset}`, and {_with_defaults(content):.2f} times one's with the defaults; by CPU "
        f"time a core is full with some {_calls_per_second(content):,.0f} calls a second"
    )


def goals(content: Content) -> Verdicts:
    return {
        TOKENS: _at_goal(content)["share"]["median"] >= content["goal"]["share"],
        AWAY: content["outage"]["away"]["low"] >= _least_left(content),
    }


def _least_left(content: Content) -> float:
    """The share of all tokens that must be left while one replica is away: all but its own."""
    return 1 - 1 / float(content["goal"]["replicas"])


def section(content: Content) -> str:
    settings, goal, outage = content["settings"], content["goal"], content["outage"]
    most, defaults = content["replicas"][-1], content["defaults"]
    per_second = _calls_per_second(content)
    of_a_replica = content["calls_per_second_of_a_replica"]
    met, least = goals(content), _least_left(content)
    return f"""\
# How far one core process goes

    python -m bench.scale --json bench/results/scale.json

All of a run but its programs is in one process, and does its work on one core. This page says when that is too little.

**With calls as long as these it is not soon.** The engine takes {ranged(_busiest(content)["cpu_ms"])} ms of CPU time
for a call with 512 in flight, so one core makes about {per_second:,.0f} calls a second. A simulated H100
answers {of_a_replica:.0f} calls a second of the workload `{settings["workload"]}` with {settings["in_flight"]} in
flight, so one core is full with about {per_second / of_a_replica:.0f} such servers. That number is computed from both
figures, and was not tried: no more than {most["replicas"]} replicas were.

## Many replicas of a server

Simulated, on the virtual clock: so many replicas of the profile `{settings["profile"]}` behind the router that a run
with `llm.base_urls` has, at most {settings["in_flight"]} calls in flight for each. The run is preset
`{settings["preset"]}` with {settings["flows"]} flows, and up to 32 workers of each stage, for each replica. Figures are
of {settings["window"]:.0f} seconds of the servers' time, {settings["warm_up"]:.0f} seconds after the start; medians and
ranges of {settings["seeds"]} seeds. *Most* is the tokens of the replica with most over the mean of all.

{_replicas(content)}

The goal is {goal["share"]:g} of {goal["replicas"]} times one replica's tokens with {goal["replicas"]} replicas:
{verdict(met[TOKENS])}.
Workers have to be given to **all** stages, repair too: with the four that it has by default, edits waited there, and
64 replicas wrote half of what they could.

The defaults don't fill many servers. They open as many flows as a validation costs in edits, because with more of them
edits are made from versions that are out of date. Only where few rows validate and candidates are accepted they open
more, up to 16 ([the rule](../how-to/presets.md#how-many-flows)). They write
{ranged(defaults["1"], 0)} tokens per second with one replica, and
{ranged(defaults[str(goal["replicas"])], 0)} with {goal["replicas"]}, which is {_with_defaults(content):.2f} times
as many. To use more servers for one task, run it several times with other seeds and begin a last run from the best
(`flowevolve run CONFIG --from DIR`), or use preset `{settings["preset"]}`.

**A replica that dies.** One of {goal["replicas"]} is gone for {outage["seconds"]:.0f} seconds, with all requests that
it had, and comes back. While it is away all together write {ranged(outage["away"])} of the tokens per second before
that, where what was lost with it counts as nothing, and a minute after its return {ranged(outage["after"])}. The goal
is that no more than its share is missing, which leaves {least:.3f}: {verdict(met[AWAY])}. Less is
missing than that, because the calls that may be in flight are shared out among the others.

## Many calls open at once

The validation of one seed on so many examples, through the whole engine without a run directory, on the virtual clock
and without a network. Memory is the peak of the process beyond what it had before.

{_open(content)}

## Many candidates

A pool with GEPA's archive, and a journal with so many events, each by itself. A whole run of 100,000 proposals is on
the page about [overhead](overhead.md); one of a million was not made.

{_candidates(content)}

## In real time

The engine with its run directory on one core, against a server in a process of its own that answers at once. The loop
is uvloop's where that is installed. [Overhead](overhead.md) has the same call, measured in another way and at another
time, so that the figures differ.

{_real(content)}

## What is shared out beyond that

Nothing, today: a run is one process. What there is are several runs: each has its own core, journal and pool, they may
share servers, and one may begin from another's pool. Programs run on
[as many machines as you like](../how-to/clusters.md).
"""


def _at_goal(content: Content) -> Content:
    return next(row for row in content["replicas"] if row["replicas"] == content["goal"]["replicas"])


def _with_defaults(content: Content) -> float:
    """The tokens that the defaults write with as many replicas as the goal has, divided by those with one."""
    defaults, replicas = content["defaults"], str(content["goal"]["replicas"])
    return float(defaults[replicas]["median"] / defaults["1"]["median"])


def _busiest(content: Content) -> Content:
    """The row in real time that says when a core is full."""
    return next(row for row in content["real"] if row["in_flight"] == 512)


def _calls_per_second(content: Content) -> float:
    return float(1000 / _busiest(content)["cpu_ms"]["median"])


def _replicas(content: Content) -> str:
    rows = [
        (
            f"{row['replicas']}",
            ranged(row["tokens_per_second"], 0),
            ranged(row["share"]),
            ranged(row["calls_per_second"], 0),
            ranged(row["uneven"]),
            f"{row['cpu_ms_with_simulator']:.2f}",
        )
        for row in content["replicas"]
    ]
    header = ("replicas", "tokens per second", "of so many times one", "calls per second", "most")
    return table((*header, "CPU ms a call, simulator included"), rows)


def _open(content: Content) -> str:
    rows = [(f"{row['open']:,}", f"{row['cpu_ms']:.2f}", f"{row['mb']:.0f}") for row in content["open_calls"]]
    return table(("calls open", "CPU ms a call", "MB"), rows)


def _candidates(content: Content) -> str:
    rows = [
        (f"{row['candidates']:,}", f"{row['pool_seconds']:.1f}", f"{row['mb']:.0f}", f"{row['journal_seconds']:.1f}")
        for row in content["candidates"]
    ]
    return table(("candidates, or events", "pool and archive, CPU s", "MB", "journal, CPU s"), rows)


def _real(content: Content) -> str:
    rows = [
        (f"{row['in_flight']:,}", ranged(row["cpu_ms"]), ranged(row["calls_per_second"], 0)) for row in content["real"]
    ]
    return table(("calls in flight", "CPU ms a call", "calls per second"), rows)
