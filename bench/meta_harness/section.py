"""The section of the page on this bench: the shape of FlashEvolve's figure 7 (c, d)."""

from __future__ import annotations

from bench._lib.text import Content, ranged, table, verdict

ROWS = {
    "proposals per minute": "proposals_per_minute",
    "valid harnesses, baselines included": "valid",
    "invalid ones": "invalid",
    "score of a valid harness": "scores",
    "best score of a run": "best_score",
}
"""The name of each figure in the file, which follows the mode's name there."""


def section(content: Content) -> str:
    settings, found = content["settings"], content["spread"]
    rows = [(name, *(ranged(found[f"{mode}_{key}"]) for mode in ("sync", "stream"))) for name, key in ROWS.items()]
    ratio = found["proposals_ratio"]
    return f"""\
## Harnesses: Meta-Harness

    python -m bench.meta_harness --minutes {settings["minutes"]:.0f} --width {settings["width"]} \
--workers {settings["workers"]} --json bench/results/meta_harness.json

*Simulated*: profile `{settings["profile"]}`, world `{settings["world"]}`, Symptom2Disease and AG News (120 training \
and 60 validation rows),
{len(settings["seeds"])} seeds, {settings["minutes"]:.0f} virtual minutes each. The harnesses really run, in the \
sandbox; their own time
does not count. Both modes may have {settings["in_flight"]} requests in flight and write up to \
{settings["candidates"]} harnesses a proposer. Lockstep scores
those of one proposer side by side, then asks the next; the stream has {settings["width"]} proposers under way. \
Median (range):

{table(("", "lockstep", "stream"), rows)}

Proposals per minute, stream over lockstep: {ranged(ratio)}; FlashEvolve reports {content["goal"]} \
(1.4 over 0.3 a minute, figure 7 c).
As a goal that is {verdict(ratio["median"] >= content["goal"])}. Tuned: {settings["width"]} flows in flight, \
{settings["workers"]} workers each for `propose` and `benchmark`; all else as it is by default.
With the default 16 flows and 8 workers one seed gave 4.6 in five virtual minutes, of which the start is a larger part.
The coder of this world does not learn from what it reads: a harness of either mode is a draw from one distribution, so
medians differ by chance and by the baselines' share, and all that more of them can bring is a better best one, as in
the paper's figure 7 (d).
"""
