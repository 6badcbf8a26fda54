"""The section of the page on this bench: LEVI and CodeEvolve beside the plain searches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bench._lib.text import Content, number, percent, table, with_interval

WHAT = """\
*Simulated* (profile `{profile}`, world `{world}`), {seeds} seeds, {evaluations} evaluations each, {width} flows at a
time. The programs are real, run and scored as they are, each call with {cpu_seconds:g} s of CPU time at most (in a
process without the sandbox's walls, which this coder does not need; a run repeats but for programs that are near that
limit). **Who writes them is not real**: a simulated
coder makes small random changes of the programs it is shown (numbers, operators, calls, loops, statements, terms that
are added, parts of the other programs shown), with no idea behind any. It heeds scores in one way: beside another
program it may move numbers to the side of the better one. A prompt of LEVI's or CodeEvolve's shows other programs, one
of the plain searches' does not. So this shows what selection, archives and islands make of changes that are hardly
directed. It can't show what they make of a language model's ideas, nor what a statement,
feedback, advice or an evolved prompt is worth to one that understands it. One and the same coder writes for all, so
LEVI's division of work between a large and a small model is not part of it. LEVI is as it ships, CodeEvolve with
{code_evolve}. Intervals are 95 % (bootstrap over seeds)."""

CHOSEN = """\
*Chosen* are settings that did well on these problems with other seeds ({seeds}), of some that were tried for each
algorithm: {said}; all else is as above. Programs of this coder score close to each other, and at LEVI's own
temperatures parents are then drawn nearly evenly from the archive."""


def section(content: Content) -> str:
    """Markdown, with its heading."""
    settings = content["settings"]
    parts = [
        "## Programs",
        "    python -m bench.programs --ablations --json bench/results/programs.json",
        f"{_what(settings)}\n\n{_chosen(settings)}",
        "### Scores at the end of the budget",
        _scores(content),
        "### LEVI and CodeEvolve less the plain searches",
        "Differences between runs of equal seeds; better, equal and worse are counts of seeds.",
        _differences(content["pairs"], "less"),
    ]
    if content["ablations"]:
        parts += [
            "### What their parts are worth",
            "The whole method less the one without; above 0 points the way of the papers.",
            _differences(content["ablations"], "less"),
        ]
    parts += ["### Stream beside lockstep", _lockstep(settings), _streams(content)]
    return "\n\n".join(parts)


def _what(settings: Content) -> str:
    code_evolve = settings["methods"]["code_evolve"]
    said = (
        f"epochs of {code_evolve['epoch']} evaluations, a migration every {code_evolve['migration']['every']} epochs "
        f"and cells by {' and '.join(code_evolve['archive']['features'])}"
    )
    return WHAT.format(**{**settings, "code_evolve": said})


def _chosen(settings: Content) -> str:
    said = "; ".join(
        f"`{name}` has {', '.join(f'{key} = {json.dumps(value)}' for key, value in changed.items())}"
        for name, changed in settings["chosen"].items()
    )
    return CHOSEN.format(said=said, seeds=", ".join(map(str, settings["chosen_on"])))


def _scores(content: Content) -> str:
    rows = [
        (
            row["problem"],
            row["method"],
            *(number(value) for value in row["quarters"][:-1]),
            with_interval(row["score"]),
            percent(row["failed_share"]),
            f"{row['tokens'] / 1000:.0f}",
        )
        for row in content["rows"]
        if row["mode"] == "stream"
    ]
    begun = ", ".join(f"{problem} {number(score)}" for problem, score in content["seed_scores"].items())
    header = ("problem", "method", "at 1/4", "at 1/2", "at 3/4", "at the end", "failed", "thousand tokens")
    return f"{table(header, rows)}\n\nThe seed programs score: {begun}."


def _differences(found: Sequence[Mapping[str, object]], word: str) -> str:
    rows = [
        (
            str(each["problem"]),
            f"{each['method']} {word} {each['other']}",
            with_interval(each["difference"], signed=True),
            f"{each['better']} / {each['equal']} / {each['worse']}",
        )
        for each in found
    ]
    return table(("problem", "", "difference", "better / equal / worse"), rows)


def _lockstep(settings: Content) -> str:
    seeds = settings["sync_seeds"]
    return (
        f"Virtual time alone, in which programs take none; {seeds} seed{'' if seeds == 1 else 's'}. "
        f"A step of lockstep is {settings['width']} flows, CodeEvolve's an epoch of all islands, which is as many."
    )


def _streams(content: Content) -> str:
    rows = [
        (
            each["problem"],
            each["method"],
            f"{each['sync_per_minute']:.0f}",
            f"{each['stream_per_minute']:.0f}",
            f"{each['ratio']['value']:.2f}",
            with_interval(each["score_difference"], signed=True),
        )
        for each in content["streams"]
    ]
    header = ("problem", "method", "evaluations/min, lockstep", "stream", "ratio (median)", "score, stream − lockstep")
    return table(header, rows)
