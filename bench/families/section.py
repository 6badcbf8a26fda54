"""The section on the landscape of families."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.text import Content, around, direction, table, with_interval
from bench.families.figures import BASELINE

WHAT = """\
*Simulated* (profile `{profile}`, world `{world}`), {seeds} seeds, {evaluations} evaluations a run, in lockstep. One
step is taken at a time, and in CodeEvolve one step of each island. The landscape is built so that structure matters.
It has eight families of programs, and the highest score of each family is the best score of a real program (from
LEVI's archive for EPLB). Small changes of the simulated model never leave a family. How often the model leaves one
when a prompt gives it a reason to was chosen by us before any run ([all numbers](../reference/simulator.md)). We
changed nothing after seeing results, but we added the variant of LEVI without both diverse seeds and shifts.

No program of the seed's family scores more than {home:g}, and none that counts copies in the seed's way scores more
than {middle:g}. Best-of-N and (1+λ) show their model one program only, so they can't get past the first of these; a
test checks that they don't.

**What follows from the rules alone.** A new family is only found through diverse seeds, shifts and advice (LEVI),
through the instructions of exploration (CodeEvolve), through plans or a start without one (CSE), and through guidance
(ContextEvolve). An algorithm without any of its sources has to stay where it began. It does not follow from the rules
how much a part brings beside the others, whether something new is kept until its numbers are good, or whether two
programs meet that have something for each other. These tables can't say how often a real model would find a new family
or move to one."""
LONG = "families --algorithms code_evolve --evaluations 200 --seeds 10"
"""The command of the longer runs."""
LONGER = """\
These are the runs of [the landscape of families](families.md) for CodeEvolve alone, with {evaluations} evaluations a
run and {seeds} seeds. They were added after the shorter ones, because each of CodeEvolve's five islands has only a
fifth of the evaluations, and of 100 evaluations a fifth goes to the first programs, which only change the seed. As in
the shorter runs, the islands send programs to each other after each third of their evaluations."""
DIFFERENCES = """\
Differences are best scores of the whole algorithm less those of the algorithm without the part, with the same seeds.
The 95 % intervals are bootstrapped over seeds and widened for few values. We say that a part separates where its
interval leaves out 0. There are {count} parts, and where there is no difference about one interval in twenty leaves out
0 by chance."""


def answer(content: Content) -> str:
    """How far ahead of (1+λ) the algorithms are, in points of the score."""
    said = [f"{each['one']} {_points(each['difference'])}" for each in content["over_baseline"]]
    less, most = _tokens_over_baseline(content)
    spent = f"{less:.1f}" if less == most else f"{less:.1f} to {most:.1f}"
    harmful = [
        f"; {each['algorithm']} is better without {each['without']}"
        for each in content["parts"]
        if direction(each["difference"]) == "harms"
    ]
    return (
        f"in points: {', '.join(said)}, with {spent} times its tokens; (1+λ) can't leave its family{''.join(harmful)}"
    )


def _points(difference: Content) -> str:
    """A difference in whole points."""
    said = around(difference, "{:.0f}".format, "–")
    return said if said.startswith("-") else f"+{said}"


def _tokens_over_baseline(content: Content) -> tuple[float, float]:
    """The tokens of the whole algorithms divided by those of (1+λ): the smallest ratio and the largest."""
    tokens = {row["variant"]: float(row["tokens"]) for row in content["rows"]}
    over = [tokens[each["one"]] / tokens[BASELINE] for each in content["over_baseline"]]
    return min(over), max(over)


def section(content: Content) -> str:
    """Markdown, with its heading."""
    return "\n\n".join(
        [
            "# A landscape of families",
            "    python -m bench.families --json bench/results/families.json",
            WHAT.format(**content["settings"]),
            *_tables(content),
        ]
    )


def long_section(content: Content) -> str:
    """Markdown of longer runs, with its heading."""
    settings = content["settings"]
    return "\n\n".join(
        [
            "# The landscape of families, longer runs",
            f"    python -m bench.{LONG} --json bench/results/families_long.json",
            LONGER.format(**settings),
            *_tables(content),
        ]
    )


def _tables(content: Content) -> list[str]:
    settings = content["settings"]
    return [
        _scores(content, settings["home"], settings["middle"]),
        "The best scores of the algorithms less those of (1+λ):",
        _differences([(str(each["one"]), each) for each in content["over_baseline"]], "the one less (1+λ)"),
        DIFFERENCES.format(count=len(content["parts"])),
        _differences(
            [(f"{each['algorithm']} without {each['without']}", each) for each in content["parts"]],
            "the whole less the one",
        ),
    ]


def separates(each: Content) -> str:
    """Whether the interval of the differences lies on one side of 0, in words."""
    words = {"helps": "separates: better", "harms": "separates: worse", "not found": "does not separate"}
    return words[direction(each["difference"])]


def _differences(found: Sequence[tuple[str, Content]], what: str) -> str:
    rows = [
        (
            name,
            with_interval(each["difference"], signed=True, digits=2),
            f"{each['better']} / {each['equal']} / {each['worse']}",
            separates(each),
        )
        for name, each in found
    ]
    return table((what, "difference", "better / equal / worse", "verdict"), rows)


def _scores(content: Content, home: float, middle: float) -> str:
    rows = [
        (
            each["variant"],
            with_interval(each["score"], digits=2),
            f"{each['past_home']} of {each['runs']}",
            f"{each['past_middle']} of {each['runs']}",
            f"{each['evaluations']:.0f}",
            f"{each['tokens']:,.0f}",
        )
        for each in content["rows"]
    ]
    header = ("variant", "best score", f"past {home:g}", f"past {middle:g}", "evaluations", "tokens")
    return table(header, rows)
