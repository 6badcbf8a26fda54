"""The section of the page on this bench: what was predicted of a real server, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bench._lib.text import Content, Verdicts, percent, table, verdict

NAMES = {
    "gepa_sync": "gepa 0.1.4, synchronous",
    "gepa_pxn_4x4": "gepa 0.1.4, PxN 4x4",
    "plain": "ours, `plain`",
    "stream": "ours, the defaults",
}
QUANTITIES = {
    "proposals_per_min": "proposals a minute",
    "output_tokens_per_s": "output tokens a second",
    "mean_in_flight": "requests in flight",
}
NEAR = 0.9
"""With so much of the most requests in flight, a server counts as full."""


def answer(content: Content) -> str:
    off = content["summary"]["proposals_per_min"]
    return (
        f"in proposals a minute off by {percent(off['median'])} in the median and by {percent(off['worst'])} at worst; "
        f"the defaults' gain over synchronous gepa was predicted as {gain(content)}"
    )


def section(content: Content) -> str:
    plan, goal = content["plan"], content["goal"]
    misses = [
        f"{NAMES[run['method']]} with {run['concurrency']} in flight, {QUANTITIES[name]} ({error:+.0%})"
        for run in content["runs"]
        for name, error in run["errors"].items()
        if abs(error) > goal["worst"]
    ]
    return f"""\
# The simulator against a real server

    python -m bench.prediction --json bench/results/prediction.json

A real vLLM with {content["model"]} on two CPU cores was measured by `flowevolve calibrate`. Then runs on it were
predicted, and after that they were made. Nothing was fitted to them.

{errors(content)}

So this is what a profile is worth that was measured right before, on the same server. The other simulated
figures are of profiles that ship: that of an H100 was compared [with an H200](gpu.md), which is another GPU, and that
of an API with nothing.
{at_cap(content)}

{"Beyond the goal at worst: " + "; ".join(misses) + "." if misses else "No single figure is beyond the goal at worst."}

{_runs(content)}

**How it was done.** First came two minutes of `flowevolve calibrate`; its own comparison with requests that nothing was
fitted to was off by {_check(content)}. Then {content["exchanges"]} answers of the model were recorded in two runs with
other seeds and another number of requests in flight. The simulated server takes the times of the measured profile, and
answers a request with one of the recorded answers to the same example or, of reflections, to any. So neither the scores
nor the lengths of answers come from a simulated world, but a better prompt does not get better answers.
Predictions are means of {plan["predictions"]} runs with seeds of their own: ours on the virtual clock, gepa itself in
real time against the simulated server over HTTP. Measured is one run each, of which the first fifth does not count. It
takes {plan["seconds"] / 60:.3g} minutes, or longer where {plan["proposals"]} proposals need more time or, for a method
that proposes in rounds, six of these. How long that is was told by a short run on the simulated server. Predictions are
of runs as long. The [workload](../reference/glossary.md) is `{plan["workload"]}`, with the lengths of that data set's
texts, divided by eight, and none of its rows; answers have at most 48 tokens.

**What limits this.** One run of a few minutes differs from the next by chance: proposals are few (the table says how
many there were), and PxN makes sixteen at a time. The model is too small to improve a prompt, so scores are not
predicted here. A server on two cores is full with few requests, and shares these cores with its clients. For a
GPU, see [there](gpu.md).
"""


def goals(content: Content) -> Verdicts:
    goal, summary = content["goal"], content["summary"]
    return {QUANTITIES[name]: _is_met(off, goal) for name, off in summary.items() if name in QUANTITIES}


def _is_met(off: Mapping[str, float], goal: Mapping[str, float]) -> bool:
    return off["median"] <= goal["median"] and off["worst"] <= goal["worst"]


def errors(content: Content) -> str:
    """How far off the predictions are, as a table."""
    summary, goal = content["summary"], content["goal"]
    rows = [
        [
            QUANTITIES.get(name, "all of them"),
            percent(off["median"]),
            percent(off["worst"]),
            verdict(_is_met(off, goal)),
        ]
        for name, off in summary.items()
    ]
    header = ["", "off in the median", "at worst", f"goal: {percent(goal['median'])} and {percent(goal['worst'])}"]
    return table(header, rows)


def deviations(content: Content) -> Mapping[str, tuple[float, float]]:
    """How far off the predictions are, in the median and at worst, as shares by the names of `QUANTITIES`."""
    summary = content["summary"]
    return {name: (summary[name]["median"], summary[name]["worst"]) for name in QUANTITIES}


def missed(content: Content) -> str:
    """What the goal is missed in, in words, or that it is met."""
    names = [name for name, met in goals(content).items() if not met]
    return f"missed for {' and '.join(names)}" if names else "met"


def at_cap(content: Content) -> str:
    """In how many runs as many requests were in flight as could be, so that their number could hardly be off."""
    runs = content["runs"]
    full = sum(run["measured"]["mean_in_flight"] >= NEAR * run["concurrency"] for run in runs)
    return (
        f"In {full} of the {len(runs)} runs on vLLM nearly all of the requests that could be were in flight, so that "
        "the prediction of their number could hardly be off."
    )


def rates(content: Content, method: str, of: Literal["measured", "predicted"] = "measured") -> Mapping[int, float]:
    """The proposals a minute of a method, by the most requests in flight."""
    return {run["concurrency"]: run[of]["proposals_per_min"] for run in content["runs"] if run["method"] == method}


def gain(content: Content) -> str:
    """The defaults' proposals over synchronous gepa's, predicted and measured, with each number of requests."""
    ratios = [
        [ours[most] / theirs[most] for most in ours]
        for ours, theirs in ([rates(content, method, of) for method in ("stream", "gepa_sync")] for of in OF)
    ]
    return ", ".join(f"{predicted:.1f} (measured {measured:.1f})" for predicted, measured in zip(*ratios, strict=True))


OF: Sequence[Literal["predicted", "measured"]] = ("predicted", "measured")


def gains(content: Content) -> str:
    """The defaults' measured proposals over synchronous gepa's."""
    ours, theirs = rates(content, "stream"), rates(content, "gepa_sync")
    return ", ".join(f"{ours[most] / theirs[most]:.1f} times with {most}" for most in ours)


def _runs(content: Content) -> str:
    header = ["method", "in flight at most", *QUANTITIES.values(), "minutes", "proposals counted"]
    rows = [
        [
            NAMES[run["method"]],
            f"{run['concurrency']}",
            *(_beside(run, name) for name in QUANTITIES),
            f"{run['seconds'] / 60:.1f}",
            f"{run['proposals']}",
        ]
        for run in content["runs"]
    ]
    return "Predicted, measured, and how far the prediction is off:\n\n" + table(header, rows)


def _beside(run: Mapping[str, Any], name: str) -> str:
    predicted, measured = run["predicted"][name], run["measured"][name]
    return f"{predicted:.1f}, {measured:.1f} ({run['errors'].get(name, 0):+.0%})"


def _check(content: Content) -> str:
    return "nothing, as it was refused" if content["check"] is None else f"{content['check']['error']:+.0%}"
