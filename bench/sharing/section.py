"""The section of the page on this bench: several runs at one server."""

from __future__ import annotations

from bench._lib.text import Content, Verdicts, percent, ranged, table, verdict

EQUAL, TOGETHER = "equal parts", "tokens of all together"
"""What the goals are about."""


def answer(content: Content) -> str:
    row, idle = _at_goal(content), _behind_gateway(content, "twenty runs with the defaults")
    least, most = (f"{100 * each:+.0f}" for each in (idle["least"]["low"], idle["most"]["high"]))
    return (
        f"{row['runs']} runs that always have requests waiting are each within {percent(_furthest(row), 1)} of an "
        f"equal part behind a gateway; {idle['runs']} with the defaults, which often have none, are {least} to "
        f"{most} % from theirs"
    )


def goals(content: Content) -> Verdicts:
    goal, row = content["goal"], _at_goal(content)
    return {EQUAL: _furthest(row) <= goal["fair"], TOGETHER: row["together"]["median"] >= goal["together"]}


def section(content: Content) -> str:
    settings, goal, row, met = content["settings"], content["goal"], _at_goal(content), goals(content)
    alone = content["ceiling_tokens_per_second"]
    return f"""\
# Several runs, one server

    python -m bench.sharing --json bench/results/sharing.json

What each of several runs gets of one server, behind a [gateway](../how-to/gateway.md) and without one, and what all of
them get together.

Simulated, on the virtual clock: one server of the profile `{settings["profile"]}` with the workload
`{settings["workload"]}`. The gateway lets {settings["slots"]} requests go to it at a time; without a gateway the server
has all of them, and its own queue. Figures are of {settings["window"]:.0f} seconds of the server's time,
{settings["warm_up"]:.0f} seconds after the start, by the tokens that the server wrote; medians and ranges of
{settings["seeds"]} seeds.

{_cases(content)}

*Least* and *most*: how far the run that got least for its share, and the one that got most, are from their parts, in
the median and over all seeds. *Together*: the tokens of all runs over the {alone:,.0f} a second that the server writes
if each of {settings["slots"]} slots has a request all the time. *A request takes*: how long a run waits for an answer,
in the gateway and at the server: median and 99th percentile over the requests of all runs.

The goals are for four equal runs: each within {percent(goal["fair"])} of its part, for every seed:
{verdict(met[EQUAL])} ({percent(_furthest(row), 1)}); together at least {goal["together"]:g} of the
ceiling: {verdict(met[TOGETHER])}.

**Twenty runs with the defaults are not equal, with a gateway or without one.** A run with the defaults often has
nothing waiting: it waits for the last answers of a validation, or for its own next step. All twenty together ask for
about what the server can do, and at times for less. Then each gets what it asks for, and the gateway does not make up
for it later: what a run did not ask for is gone to the others. None starves, and the server has
{settings["slots"]} requests at a time at most, instead of all that twenty runs have.

**What it says, and what it does not.** A server without a gateway serves in the order of arrival, so a run gets as much
of it as it has requests there: runs that are alike get nearly, but not always, like parts, and a wider one gets more.
A gateway makes no server faster: with fewer requests at a time than the server could take, all together wrote a
little less than without one. All runs are of one workload here. The gateway counts the tokens of prompts, too, and the
figures count those of answers alone. What the gateway's process costs in real time is not in these figures.
"""


def _at_goal(content: Content) -> Content:
    return _behind_gateway(content, "four equal runs")


def _behind_gateway(content: Content, case: str) -> Content:
    return next(row for row in content["cases"] if row["case"] == case and row["gateway"])


def _furthest(row: Content) -> float:
    """How far any run was from its part, for any seed."""
    furthest: float = max(-row["least"]["low"], row["most"]["high"])
    return furthest


def _cases(content: Content) -> str:
    rows = [
        (
            row["case"],
            "gateway" if row["gateway"] else "none",
            _deviation(row["least"]),
            _deviation(row["most"]),
            ranged(row["together"]),
            f"{row['seconds_p50']['median']:.0f} / {row['seconds_p99']['median']:.0f} s",
            f"{row['most_in_flight']:,}",
            f"{row['failures']}",
            f"{row['fewest_proposals']} to {row['most_proposals']}",
        )
        for row in content["cases"]
    ]
    header = ("runs", "in front", "least", "most", "together", "a request takes", "most at the server")
    return table((*header, "failed requests", "proposals of a run"), rows)


def _deviation(spread: Content) -> str:
    median, low, high = (f"{100 * spread[name]:+.1f}" for name in ("median", "low", "high"))
    return f"{median} %" if low == high else f"{median} ({low} to {high}) %"
