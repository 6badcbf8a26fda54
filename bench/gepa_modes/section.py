"""The section of the page on this bench: the stream beside lockstep."""

from __future__ import annotations

from bench._lib.text import Content, table

ROWS = {
    "proposals per minute, stream over lockstep": "proposals_ratio",
    "time to lockstep's final score, stream over lockstep": "time_to_sync_score_ratio",
    "requests in flight, lockstep": "sync_mean_in_flight",
    "requests in flight, stream (8 flows)": "stream_mean_in_flight",
    "final score, lockstep": "sync_final_score",
    "final score, stream": "stream_final_score",
    "of the items `guarded` would discard, share that `reflective` repairs": "repaired_share",
}
"""Each figure's name in the file."""


def figures(content: Content) -> str:
    """The table, as the README has it too."""
    rows = []
    for name, key in ROWS.items():
        spread = content["spread"][key]
        rows.append((name, f"{spread['median']:.2f}", f"{spread['low']:.2f} to {spread['high']:.2f}"))
    return table(("", "median", "range"), rows)


def section(content: Content) -> str:
    settings, by_overlap = content["settings"], content["repaired_share_by_overlap"]
    shares = ", ".join(f"{share['median']:.2f} at {overlap}" for overlap, share in by_overlap.items())
    return f"""\
## Stream and lockstep

    python -m bench.gepa_modes --json bench/results/gepa_modes.json

*Simulated*: profile `{settings["profile"]}`, world `{settings["world"]}`, {len(settings["seeds"])} seeds, \
{settings["minutes"]:.0f} virtual minutes each. Both modes are the same code with
the same task, seeds, prompts and minibatches; the stream has {settings["width"]} flows and staleness \
`{settings["policy"]}`.

{figures(content)}

The share repaired depends on how much edits made side by side say the same: {shares} of overlap (median).
The [README](../README.md) says how the settings came about.
"""
