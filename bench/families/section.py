"""The section on the landscape of families."""

from __future__ import annotations

from bench._lib.text import Content, direction, table, with_interval

WHAT = """\
*Simulated* (profile `{profile}`, world `{world}`), {seeds} seeds, {evaluations} evaluations a run, in lockstep, one
step at a time (of CodeEvolve one of each island). The landscape is built so that structure matters: eight families of
programs, whose ceilings are the best scores of real programs (LEVI's archive for EPLB), and a simulated model whose
small changes never leave a family. How often it leaves one where a prompt gives it occasion was chosen by us, before
any run ([all numbers](reference/simulator.md)), and the first measurement is the one shown. So these tables say which
parts of an algorithm give occasion, and whether it makes use of what then comes; how often a real model would take it
they can't say.

No program of the seed's family scores more than {home:g}, and none that counts copies as the seed does more than
{middle:g}. Best-of-N and (1+λ) show their model one program, so they can't pass the first, which a test holds them
to."""
DIFFERENCES = """\
Differences are best scores of the whole less those of the one without the part, with the same seeds; 95 % intervals are
bootstrapped over seeds. A part is said to separate where its interval leaves out 0. There are {count} parts; of
intervals around nothing one in twenty leaves out 0 by chance."""


def section(content: Content) -> str:
    """Markdown, with its heading."""
    settings = content["settings"]
    return "\n\n".join(
        [
            "## A landscape of families",
            "    python -m bench.families --json bench/results/families.json",
            WHAT.format(**settings),
            _scores(content, settings["home"], settings["middle"]),
            "### The algorithms over (1+λ)",
            table(
                ("the one less (1+λ)", "difference", "better / equal / worse", "direction"),
                [(each["one"], *_difference(each), direction(each["difference"])) for each in content["over_baseline"]],
            ),
            "### The algorithms less one part",
            DIFFERENCES.format(count=len(content["parts"])),
            table(
                ("the whole less the one", "difference", "better / equal / worse", "the part"),
                [
                    (f"{each['algorithm']} without {each['without']}", *_difference(each), separates(each))
                    for each in content["parts"]
                ],
            ),
        ]
    )


def separates(each: Content) -> str:
    """What is said of a part, by the interval of its differences."""
    words = {"helps": "separates: it helps", "harms": "separates: it harms", "not found": "does not separate"}
    return words[direction(each["difference"])]


def _difference(each: Content) -> tuple[str, str]:
    return (
        with_interval(each["difference"], signed=True, digits=2),
        f"{each['better']} / {each['equal']} / {each['worse']}",
    )


def _scores(content: Content, home: float, middle: float) -> str:
    rows = [
        (
            each["variant"],
            with_interval(each["score"], digits=2),
            f"{each['past_home']} of {each['runs']}",
            f"{each['past_middle']} of {each['runs']}",
            f"{each['evaluations']:.0f}",
            f"{each['failures']:.1f}",
            f"{each['tokens']:,.0f}",
        )
        for each in content["rows"]
    ]
    header = ("variant", "best score", f"past {home:g}", f"past {middle:g}", "evaluations", "failures", "tokens")
    return table(header, rows)
