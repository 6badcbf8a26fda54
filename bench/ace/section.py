"""The section of the page on this bench: the shape of FlashEvolve's figure 7 (a, b), and a real run."""

from __future__ import annotations

from bench._lib.text import Content, percent, ranged, table


def answer(content: Content) -> str:
    found = content["spread"]
    return (
        f"after {_time(content)}, learning from {ranged(found['stream_samples_per_minute'])} samples a minute instead "
        f"of {ranged(found['sync_samples_per_minute'])}{_samples(content)}"
    )


def _samples(content: Content) -> str:
    """How many times as many samples as lockstep the stream has learned from when it reaches lockstep's final score, if
    its median run does.
    """
    found, runs = content["spread"], len(content["settings"]["seeds"])
    if 2 * (runs - content["reached"]) >= runs:
        return ""
    time, stream, lockstep = (
        found[name]["median"]
        for name in ("time_to_sync_score_ratio", "stream_samples_per_minute", "sync_samples_per_minute")
    )
    return f", so from {time * stream / lockstep:.1f} times as many samples until then"


def _time(content: Content) -> str:
    """The stream's time to lockstep's final score, and how many runs never reach it."""
    ratio, runs = content["spread"]["time_to_sync_score_ratio"], len(content["settings"]["seeds"])
    never = runs - content["reached"]
    if not never:
        return f"{ranged(ratio)} of the time"
    if 2 * never >= runs:
        soonest = f"the soonest has it after {ratio['low']:.2f} of lockstep's time"
        return f"more time than was measured ({never} of {runs} runs never reach it; {soonest})"
    return f"{ratio['median']:.2f} ({ratio['low']:.2f}–never) of the time ({never} of {runs} runs never reach it)"


def _ahead(content: Content) -> str:
    found = content["spread"]["stream_above_sync"]
    median, low, high = (percent(found[name]) for name in ("median", "low", "high"))
    return f"{median} ({low} to {high})"


def section(content: Content) -> str:
    settings, found = content["settings"], content["spread"]
    curves = content["best_score_by_minute"]
    rows = [(at, ranged(sync), ranged(curves["stream"][at])) for at, sync in curves["sync"].items()]
    return f"""\
# A playbook: ACE

    python -m bench.ace --json bench/results/ace.json

*Simulated*: profile `{settings["profile"]}`, world `{settings["world"]}`, the task `house_style`, \
{len(settings["seeds"])} seeds, {settings["minutes"]} virtual minutes each. In
lockstep each sample waits for the one before it, which is how ACE is published. The stream works on
{settings["width"]} samples at a time. The playbook is validated every {settings["validate_every"]} samples, because at
the published interval of 100 lockstep would be validated only once in this time. The table has the best validation
score so far, as the median over seeds with the range:

{table(("minute", "lockstep", "stream"), rows)}

Lockstep learns from {ranged(found["sync_samples_per_minute"])} samples a minute and the stream from
{ranged(found["stream_samples_per_minute"])}{_samples(content)}. [The page on algorithms](algorithms.md)
compares both at equal tokens. The stream is at lockstep's final score after {_time(content)}.
In the runs of one seed it is ahead of lockstep at {_ahead(content)} of these minutes (median and
range over seeds). Both end close to the best score that this task allows, so the later rows tell less than the earlier
ones. The first rows partly show when scores are first taken: a run has the seed's score until its first
{settings["validate_every"]} samples are learnt from and validated. It first rises after
{ranged(found["sync_first_rise_minutes"], 1)} minutes in lockstep and {ranged(found["stream_first_rise_minutes"], 1)} in
the stream.

FlashEvolve's figure 7 (a, b) makes the same comparison on FiNER and Formula with Qwen3-8B on an H100. After 30 minutes
lockstep has 0.60 and 0.66 there, and the stream 0.66 and 0.70. Only the shape of the curves can be compared with ours,
because the simulated world asks other questions.
"""
