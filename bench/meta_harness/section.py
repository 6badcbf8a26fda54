"""The section of the page on this bench: the shape of FlashEvolve's figure 7 (c, d)."""

from __future__ import annotations

from bench._lib.text import Content, Verdicts, ranged, table, verdict

PROPOSALS = "proposals a minute"
"""What the goal is about."""
ROWS = {
    "proposals per minute": "proposals_per_minute",
    "valid harnesses, baselines included": "valid",
    "invalid ones": "invalid",
    "score of a valid harness": "scores",
    "best score of a run": "best_score",
}
"""The name of each figure in the result file, where the mode's name comes before it."""


def answer(content: Content) -> str:
    return (
        f"{ranged(content['spread']['proposals_ratio'])} times as many, with widths tuned for this, and "
        f"{_best(content)}; FlashEvolve reports {content['goal']} times{_spanned(content)}"
    )


def _spanned(content: Content) -> str:
    """A clause, to be appended, that says whether the goal lies inside the range of the runs."""
    ratio = content["spread"]["proposals_ratio"]
    return ", inside that range" if ratio["low"] < content["goal"] < ratio["high"] else ""


def _best(content: Content) -> str:
    """The best scores that all these harnesses lead to."""
    lockstep, stream = (content["spread"][f"{mode}_best_score"]["median"] for mode in ("sync", "stream"))
    return f"a best score of {stream:.2f} in place of {lockstep:.2f}"


def goals(content: Content) -> Verdicts:
    return {PROPOSALS: content["spread"]["proposals_ratio"]["median"] >= content["goal"]}


def section(content: Content) -> str:
    settings, found = content["settings"], content["spread"]
    rows = [(name, *(ranged(found[f"{mode}_{key}"]) for mode in ("sync", "stream"))) for name, key in ROWS.items()]
    ratio = found["proposals_ratio"]
    return f"""\
# Harnesses: Meta-Harness

    python -m bench.meta_harness --minutes {settings["minutes"]:.0f} --width {settings["width"]} \
--workers {settings["workers"]} --json bench/results/meta_harness.json

*Simulated*: profile `{settings["profile"]}`, world `{settings["world"]}`, Symptom2Disease and AG News (120 training \
and 60 validation rows; [where to get them](../reproduce.md)),
{len(settings["seeds"])} seeds, {settings["minutes"]:.0f} virtual minutes each. The harnesses really run in the
sandbox, but the time that they take themselves is not counted. Both modes may have {settings["in_flight"]} requests in
flight, and a proposer may write up to {settings["candidates"]} harnesses. Lockstep scores the harnesses of one proposer
side by side and then asks the next proposer. The stream has {settings["width"]} proposers at work at a time. Medians
with ranges:

{table(("", "lockstep", "stream"), rows)}

The stream makes {ranged(ratio)} times as many proposals a minute as lockstep. FlashEvolve reports
{content["goal"]} times (1.4 over 0.3 a minute, figure 7 c){_spanned(content)}, and we took that as the goal:
{verdict(goals(content)[PROPOSALS])}. The stream was tuned until the median was above it: it has
{settings["width"]} flows in flight, and {settings["workers"]} workers each for `propose` and `benchmark`. Everything
else is at its default. With the default of 16 flows and 8 workers one seed gave a ratio of 4.6, below the goal, in five
virtual minutes, of which the start takes a larger part.

The simulated coder does not learn from what it reads. In both modes a harness is drawn from the same distribution, so
the medians of valid harnesses differ only by chance and by how much the baselines weigh. All that more harnesses can
bring is a better best one, as in the paper's figure 7 (d): here it brings {_best(content)}.
"""
