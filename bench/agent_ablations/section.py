"""The section on the parts of CSE and the agents of ContextEvolve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench._lib.text import Content, around, direction, table, with_interval

WHAT = """\
*Simulated* (profile `{profile}`, world `{world}`), {seeds} seeds, in the published form, which takes one step at a
time. The whole algorithm and the algorithm without a part have the same seeds and the same number of evaluations. In
CSE's runs that is {evaluations}, including the seed, where its paper has 30 programs that were all written. In
ContextEvolve's runs it is {agent_evaluations}. Differences are best scores of the one less those of the other, with 95
% intervals (bootstrap over seeds, widened for few values). *All* is the mean of the differences over both problems,
each as a share of the other's score. We say that a direction was found where that interval leaves out 0.

**What differs from CSE's paper.** Each run is one task by itself, so there is no global memory. *Memory* is what a run
learns about its own task, while the published figures beside it are of local and global memory together. Neither
problem is one of efficiency, so ET, MP and MI are not measured. The problem's own score is compared instead, and of
the published figures only the sign can be compared.

**What a simulated coder can't show.** Its plans, lessons, abstracts and guidance only name kinds of changes
(constants, loops, calls and so on) that went well or badly, as read off the programs and scores in the prompt. It
makes such a kind of change more often, and takes nothing else from them. The papers' parts are for ideas that one step
has and another can use, and there are none here. So these tables say whether the machinery carries what little there
is to the place where it can act; they neither confirm nor refute the papers."""

PUBLISHED_TABLE2 = {
    "planning": "68.10 to 63.82",
    "evolution": "68.10 to 64.72",
    "memory": "68.10 to 63.08 (local and global)",
}
"""Published MI of the whole, and of the whole without the part."""
NAMES = {"memory": "local memory"}
"""The names used for parts that cover less here than in the paper."""
PUBLISHED_FIGURE4 = {
    ("planning",): "-0.23",
    ("evolution",): "+2.68",
    ("planning", "evolution"): "+5.02",
}
PUBLISHED_FIGURE2C = {"summarizer": "-9.3 %", "navigator": "-2.9 %", "sampler": "-6.0 %"}


def answer(content: Content) -> str:
    comparisons = [each for name in ("table2", "figure4", "figure2c") for each in content[name]]
    runs = {(each["one"], each["other"]): each["relative"] for each in comparisons}  # two tables share a comparison
    found = [direction(each) for each in runs.values()]
    counts = {name: found.count(name) for name in ("helps", "harms", "not found")}
    if counts["not found"] == len(found):
        said = f"over both problems none of {len(found)} comparisons found that the part helps or harms"
    else:
        said = (
            f"of {len(found)} comparisons over both problems {counts['helps']} found that the part helps and "
            f"{counts['harms']} that it harms; {counts['not found']} found no direction"
        )
    return f"{said}{_on_one_problem(comparisons)}"


def _on_one_problem(comparisons: Sequence[Content]) -> str:
    """Clauses that say on which single problem a part helps or harms, to be appended to another sentence."""
    found = {
        f"{each['one']} is {word} than {each['other']} on `{problem}` alone, by {_score(paired['difference'])}"
        for each in comparisons
        for problem, paired in each["problems"].items()
        if (word := {"helps": "better", "harms": "worse"}.get(direction(paired["difference"])))
    }
    return "".join(f"; {each}" for each in sorted(found))


def _score(difference: Content) -> str:
    return with_interval(difference, signed=True, digits=3)


def section(content: Content) -> str:
    """Markdown, with its heading."""
    table2 = [
        (f"without {NAMES.get(each['without'], each['without'])}", PUBLISHED_TABLE2[each["without"]], each)
        for each in content["table2"]
    ]
    figure4 = [
        (f"to {' and '.join(each['to']) or 'neither'}", PUBLISHED_FIGURE4.get(tuple(each["to"]), "–"), each)
        for each in content["figure4"]
    ]
    figure2c = [
        (f"without {each['without']}", PUBLISHED_FIGURE2C[each["without"]], each) for each in content["figure2c"]
    ]
    return "\n\n".join(
        [
            "# Agents: CSE and ContextEvolve",
            "    python -m bench.agent_ablations --json bench/results/agent_ablations.json",
            WHAT.format(**content["settings"]),
            "## CSE without one part (its table 2)",
            _differences("the whole less the one", "published (MI)", table2),
            "## Local memory added to other parts of CSE (its figure 4)",
            _differences("local memory added", "published (ΔMI, local and global)", figure4),
            "## ContextEvolve without one agent (its figure 2 c)",
            _differences("the whole less the one", "published (of the one)", figure2c),
            "## Scores",
            _scores(content["rows"]),
        ]
    )


def _differences(what: str, published: str, found: Sequence[tuple[str, str, Content]]) -> str:
    problems = list(found[0][2]["problems"])
    rows = [
        (
            name,
            *(_paired(each["problems"][problem]) for problem in problems),
            _percent(each["relative"]),
            direction(each["relative"]),
            said,
        )
        for name, said, each in found
    ]
    return table((what, *problems, "all", "direction", published), rows)


def _paired(each: Content) -> str:
    counts = f"{each['better']} / {each['equal']} / {each['worse']}"
    return f"{with_interval(each['difference'], signed=True)}; {counts} better / equal / worse"


def _percent(each: Content) -> str:
    return around(each, lambda share: f"{100 * share:+.2f} %")


def _scores(found: Sequence[Mapping[str, object]]) -> str:
    rows = [
        (
            str(each["problem"]),
            str(each["variant"]),
            with_interval(each["score"]),
            f"{each['evaluations']:.0f}",
            f"{each['failures']:.1f}",
            f"{each['tokens']:,.0f}",
        )
        for each in found
    ]
    return table(("problem", "variant", "best score", "evaluations", "failures", "tokens"), rows)
