"""The section on the landscape of families."""

from __future__ import annotations

from collections.abc import Sequence

from bench._lib.text import Content, direction, table, with_interval

WHAT = """\
*Simulated* (profile `{profile}`, world `{world}`), {seeds} seeds, {evaluations} evaluations a run, in lockstep, one
step at a time (of CodeEvolve one of each island). The landscape is built so that structure matters: eight families of
programs, whose ceilings are the best scores of real programs (LEVI's archive for EPLB), and a simulated model whose
small changes never leave a family. How often it leaves one where a prompt gives it occasion was chosen by us, before
any run ([all numbers](reference/simulator.md)), and nothing was changed by what came out; LEVI without both diverse
seeds and shifts was added afterwards.

No program of the seed's family scores more than {home:g}, and none that counts copies as the seed does more than
{middle:g}. Best-of-N and (1+λ) show their model one program, so they can't pass the first, which a test holds them to.

**What follows from the rules alone**: new ways only come from diverse seeds, shifts and advice (LEVI), exploration's
instructions (CodeEvolve), plans, or a start without one (CSE), and guidance (ContextEvolve). An algorithm without any
of its sources has to stay where it is. What does not follow is how much a part brings beside the others, whether what
is new is kept until its numbers are good, and whether two programs meet that have something for each other. How often
a real model would find or take a new way these tables can't say."""
LONG = "families --algorithms code_evolve --evaluations 200 --seeds 10"
"""The command of the longer runs."""
LONGER = """\
The same with {evaluations} evaluations a run and {seeds} seeds for CodeEvolve, whose five islands have a fifth of the
evaluations each, and of 100 spend a fifth on their first programs, which are changes of the seed alone. These runs were
added after those above. The islands send programs every third of their evaluations, as above."""
DIFFERENCES = """\
Differences are best scores of the whole less those of the one without the part, with the same seeds; 95 % intervals are
bootstrapped over seeds. A part is said to separate where its interval leaves out 0. There are {count} parts; of
intervals around nothing one in twenty leaves out 0 by chance."""


def section(content: Content) -> str:
    """Markdown, with its heading."""
    return "\n\n".join(
        [
            "## A landscape of families",
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
            "## The landscape of families, longer runs",
            f"    python -m bench.{LONG} --json bench/results/families_long.json",
            LONGER.format(**settings),
            *_tables(content),
        ]
    )


def _tables(content: Content) -> list[str]:
    settings = content["settings"]
    return [
        _scores(content, settings["home"], settings["middle"]),
        "The algorithms less (1+λ):",
        _differences([(str(each["one"]), each) for each in content["over_baseline"]], "the one less (1+λ)"),
        DIFFERENCES.format(count=len(content["parts"])),
        _differences(
            [(f"{each['algorithm']} without {each['without']}", each) for each in content["parts"]],
            "the whole less the one",
        ),
    ]


def separates(each: Content) -> str:
    """What the interval of its differences says of one side."""
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
