"""The rows of a result by workload, and words for its pages on what they measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench._lib.text import Content

BASE = "gepa_sync"
COLUMNS = {
    "proposals_per_min": "proposals/min",
    "output_tokens_per_s": "output tokens/s",
    "mean_in_flight": "in flight",
}


def by_workload(content: Content) -> Mapping[str, Mapping[str, Content]]:
    """The rows of each workload by method, in the order of the file."""
    found: dict[str, dict[str, Content]] = {}
    for row in content["rows"]:
        found.setdefault(row["workload"], {})[row["method"]] = row
    return found


def workloads(content: Content) -> str:
    """The names of the workloads."""
    return " and ".join(f"`{name}`" for name in by_workload(content))


def spanned(values: Sequence[float], digits: int = 2) -> str:
    """From the lowest to the highest."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def gpu_name(content: Content) -> str:
    return str(content["machine"]["gpu"]).partition(",")[0]


def minutes(content: Content) -> str:
    """How long a run is."""
    given = content["settings"]["minutes"]
    return "one minute" if given == 1 else f"{given:g} minutes"


def runs(content: Content) -> str:
    """How many runs there are of each method, and how long they are."""
    repeats = content["settings"]["repeats"]
    return f"one run of {minutes(content)}" if repeats == 1 else f"{repeats} runs of {minutes(content)}"
