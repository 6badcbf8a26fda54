"""The section of the page on this bench: LEVI and CodeEvolve beside the plain searches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bench._lib.text import Content, direction, number, percent, ranged, table, with_interval

WHAT = """\
*Simulated* (profile `{profile}`, world `{world}`), {seeds} seeds ({ablation_seeds} without a part), {evaluations}
evaluations each, {width} flows at a time. The programs are real. They are run and scored as they are, and each call has
{cpu_seconds:g} s of CPU time at most. They run in a process without the sandbox's walls, which this coder does not
need. The same command gives the same results again, except for programs that come near the limit on CPU time.

**The coder that writes the programs is not real.** It makes small random changes to the programs that it is shown: to
numbers, operators, calls, loops and statements, by adding terms, and by taking parts of the other programs. It has no
idea in mind when it does so. It heeds scores in one way only: when it sees another program, it may move numbers towards
the better of the two. The prompts of LEVI and CodeEvolve show other programs and those of the plain searches don't. So
these figures show what selection, archives and islands make of changes that are hardly directed. They can't show what
these would make of a language model's ideas, nor what a problem statement, feedback, advice or an evolved prompt is
worth to a model that understands it. The same coder writes for all, so LEVI's division of work between a large and a
small model is not tested. LEVI has its default settings. CodeEvolve has {code_evolve}. Intervals are 95 % (bootstrap
over seeds, widened for few values)."""

CHOSEN = """\
*Chosen* marks settings that did well on these problems with other seeds ({seeds}), out of several that were tried for
each algorithm: {said}. Everything else is as above. This coder's programs have scores that are close to each other, and
at LEVI's own temperatures parents are then drawn nearly evenly from the archive."""


def answer(content: Content) -> str:
    """On how many problems LEVI and CodeEvolve are ahead of (1+λ) by more than chance, and on how many behind."""
    said = []
    for method, name in (("levi", "LEVI"), ("code_evolve", "CodeEvolve")):
        pairs = [each for each in content["pairs"] if each["method"] == method and each["other"] == "one_plus_lambda"]
        found = [direction(each["difference"]) for each in pairs]
        ahead, behind = found.count("helps"), found.count("harms")
        said.append(f"{name} beats (1+λ) on {ahead} of {len(pairs)} problems and loses on {behind}")
    return f"{'; '.join(said)} (95 % intervals)"


def section(content: Content) -> str:
    """Markdown, with its heading."""
    settings = content["settings"]
    parts = [
        "# Programs",
        "    python -m bench.programs --ablations --json bench/results/programs.json",
        f"{_what(settings)}\n\n{_chosen(settings)}",
        "## Scores at the end of the budget",
        _scores(content),
        "## LEVI and CodeEvolve compared with the plain searches",
        "These are differences between runs with the same seeds. Better, equal and worse are counts of seeds.",
        _differences(content["pairs"], "less"),
    ]
    if content["ablations"]:
        parts += [
            "## What their parts are worth",
            "These are scores of the whole method less those without the part. Above 0 agrees with the papers.",
            _differences(content["ablations"], "less"),
        ]
    parts += ["## The stream compared with lockstep", _lockstep(settings), _streams(content)]
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
            f"{row['score']['n']}",
            *(number(value) for value in row["quarters"][:-1]),
            with_interval(row["score"]),
            percent(row["failed_share"]),
            f"{row['tokens'] / 1000:.0f}",
        )
        for row in content["rows"]
        if row["mode"] == "stream"
    ]
    begun = ", ".join(f"{problem} {number(score)}" for problem, score in content["seed_scores"].items())
    header = ("problem", "method", "seeds", "at 1/4", "at 1/2", "at 3/4", "at the end", "failed", "thousand tokens")
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
        f"Only virtual time counts here, in which programs take none; {seeds} seed{'' if seeds == 1 else 's'}. "
        f"A step of lockstep is {settings['width']} flows; CodeEvolve's is an epoch of all islands, which is as many."
    )


def _streams(content: Content) -> str:
    rows = [
        (
            each["problem"],
            each["method"],
            f"{each['sync_per_minute']:.0f}",
            f"{each['stream_per_minute']:.0f}",
            ranged(each["ratio"], 2),
            with_interval(each["score_difference"], signed=True),
        )
        for each in content["streams"]
    ]
    header = ("problem", "method", "evaluations/min, lockstep", "stream", "ratio (median)", "score, stream − lockstep")
    return table(header, rows)
