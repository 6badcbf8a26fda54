"""The section of the page on this bench: what plans foretell, beside what runs took."""

from __future__ import annotations

from statistics import median

from bench._lib.text import Content, Verdicts, percent, table, verdict
from bench.plan.comparing import amounts
from flowevolve.runner.forecast.doubts import Estimate

NAMES = {
    "hours": "minutes",
    "input_tokens": "tokens in",
    "output_tokens": "tokens out",
    "dollars": "dollars",
    "proposals": "proposals",
}
INSIDE, WIDTH = "amounts in their intervals", "how wide intervals are"
"""What the goals are about."""
FIRST_TWELVE = "35 of 47"
"""The amounts that lay in their intervals before the widths were chosen again; the result file doesn't have this."""


def answer(content: Content) -> str:
    return (
        f"in {_whole(content)} of {len(content['cases'])} recorded runs all amounts ({content['covered']} of "
        f"{content['amounts']}) lay in their intervals, whose upper end is {content['median_factor']:.2f} times the "
        f"lower one (median{_wider(content)}); simulated servers of the plan's own kind, and intervals widened after "
        f"{FIRST_TWELVE} in a first twelve runs"
    )


def goals(content: Content) -> Verdicts:
    goal = content["goal"]
    return {
        INSIDE: content["covered"] / content["amounts"] >= goal["covered"],
        WIDTH: content["median_factor"] <= goal["factor"],
    }


def section(content: Content) -> str:
    goal, cases, met = content["goal"], content["cases"], goals(content)
    share = content["covered"] / content["amounts"]
    over_http = sum(row["http"] for row in cases)
    return f"""\
# What a plan foretells

    python -m bench.plan --json bench/results/plan.json

[`flowevolve plan`](../how-to/plan.md) says before a run what it will take. Here {len(cases)} runs were planned and then
recorded. Nothing of the plan was fitted on them: the widths of intervals were chosen on seventeen other runs
(`--tuning`). Twelve of those were to be reported here at first. Of what their budgets left open, {FIRST_TWELVE}
amounts lay in their intervals, which were 1.48 times as high as low in the median: too narrow. So these were chosen
anew on all seventeen, and another twelve runs drawn up before any of them was made. All models are simulated; none of
the runs is on a real vLLM.

**In {_whole(content)} of {len(cases)} runs all amounts that the budget leaves open lie in their intervals.** Of single
amounts it is {content["covered"]} of {content["amounts"]} ({percent(share)}; the goal is {percent(goal["covered"])}:
{verdict(met[INSIDE])}), but those of one run depend on each other, as dollars do on tokens. The upper end of an
interval is {content["median_factor"]:.2f} times its lower end in the median (the goal is at most {goal["factor"]:g}:
{verdict(met[WIDTH])}). An amount that the budget settles, such as the minutes of a run that has ten, is shown in
brackets and counts for nothing.

{_table(content)}

Each cell has what was taken, and below it what was foretold with its interval; what lies outside is bold.

## How the runs were chosen

The list is in `bench/plan/cases.py` and was in the repository before any of its runs was made: every algorithm that
evolves prompts, one that evolves programs, each preset of GEPA, five kinds of budgets, both kinds of servers, a rate
limit, {len(cases) - over_http} runs on the virtual clock, and {over_http} against a server over HTTP in real time, on a
machine that was busy with other work, so that time is not the server's alone.

- The servers are not what the profiles say: every time of theirs differs by a factor of its own (standard deviation
  7 %), as a measured profile differs from its server, and answers are longer or shorter (25 %).
- In {sum(row["measured"] for row in cases)} runs the plan was given the lengths of answers in a short run of eight
  proposals with another seed, as `--lengths` does; in the others it had the profile's.
- The simulated models improve prompts by {len({row["world"] for row in cases})} presets. The plan simulates three
  (`easy`, `normal`, `adversarial`), and scores by rules that it makes up for each row, whatever the task.
- The seeds are others than those of the plans.

## What this cannot show

Profile and server are of one kind here: both are this project's model of a server. How far that model is from a real
server is another question, and a plan is no better than its profile. A simulated model's prompts grow by a line or two
with each edit; a real model's may grow faster, and its runs then take more input tokens than foretold.

How long programs run depends on what else the machine does. Among the seventeen were three searches for programs, on a
machine with ten times as much to do as it could. Two of these took 1.6 and 2.9 times the hours that were foretold.
"""


def _without(content: Content) -> list[Content]:
    """The runs whose plans had no measured lengths."""
    return [row for row in content["cases"] if not row["measured"]]


def _wider(content: Content) -> str:
    """How wide intervals are without measured lengths; empty if all plans had measured lengths."""
    without = _without(content)
    if not without:
        return ""
    factors = [each.high / each.low for row in without for _, each, _, settled in amounts(row) if not settled]
    return f", and {median(factors):.2f} times without measured lengths, as in {len(without)} of the runs"


def _whole(content: Content) -> int:
    """In how many runs all amounts lie in their intervals."""
    return sum(all(_inside(row)) for row in content["cases"])


def _inside(row: Content) -> list[bool]:
    return [each.low <= taken <= each.high for _, each, taken, settled in amounts(row) if not settled]


def _table(content: Content) -> str:
    rows = []
    for row in content["cases"]:
        budget = ", ".join(f"{limit:,} {name}" for name, limit in row["budget"].items())
        cells = [_cell(*each) for each in amounts(row)]
        rows.append((row["name"].removeprefix("second: "), budget, row["foretold"]["limit"], *cells))
    return table(("run", "budget", "limited by", *NAMES.values()), rows)


def _cell(name: str, foretold: Estimate, taken: float, settled: bool) -> str:
    if name == "hours":
        foretold, taken = foretold.scaled(60), taken * 60
    actual = _short(taken)
    if not foretold.low <= taken <= foretold.high and not settled:
        actual = f"**{actual}**"
    said = f"{actual}<br>{_short(foretold.expected)} ({_short(foretold.low)}–{_short(foretold.high)})"
    return f"[{said}]" if settled else said


def _short(value: float) -> str:
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}"
