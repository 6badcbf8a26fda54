"""The section of the page on this bench: the shape of FlashEvolve's figure 7 (a, b), and a real run."""

from __future__ import annotations

from bench._lib.text import Content, ranged, table


def section(content: Content) -> str:
    settings, found = content["settings"], content["spread"]
    curves = content["best_score_by_minute"]
    rows = [(at, ranged(sync), ranged(curves["stream"][at])) for at, sync in curves["sync"].items()]
    return f"""\
## A playbook: ACE

    python -m bench.ace --json bench/results/ace.json

*Simulated*: profile `{settings["profile"]}`, world `{settings["world"]}`, the task `house_style`, \
{len(settings["seeds"])} seeds, {settings["minutes"]} virtual minutes each. In
lockstep each sample waits for the one before, as ACE is published; the stream has {settings["width"]} under way. \
A playbook is validated every
{settings["validate_every"]} samples: at the published 100, lockstep would get to one validation in this time. \
Best validation score, median (range):

{table(("minute", "lockstep", "stream"), rows)}

Samples learnt from a minute: {ranged(found["sync_samples_per_minute"])} in lockstep, \
{ranged(found["stream_samples_per_minute"])} in the stream. It reaches lockstep's
final score in {ranged(found["time_to_sync_score_ratio"])} of lockstep's time (2: never), and is above it in \
{ranged(found["stream_above_sync"])} of the rows. Both come near
what this task has to give, so the last rows say less than the first.

FlashEvolve's figure 7 (a, b) has the same comparison on FiNER and Formula with Qwen3-8B on an H100: 0.60 and 0.66 after
30 minutes in lockstep, 0.66 and 0.70 in the stream. Only the shape can be compared: this world knows other questions.
"""
