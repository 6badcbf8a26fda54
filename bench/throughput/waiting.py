"""How long the simulated servers of runs in real time waited for a core that other programs used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from bench._lib.text import between
from bench._lib.time_to_score import Rows
from bench.throughput.labels import LABELS
from bench.throughput.rows import values

SHARE = "held_up_share"
WAITED = """
While a server waits for a core, its answers are late. In the mean of a method's runs they waited for this part of the
time: {each}. On the virtual clock nothing waits."""


def waiting(found: Mapping[str, Rows]) -> str:
    """The share of the time for each method that ran in real time; empty if it is not known."""
    shares = {label: waited(found.values(), method) for method, label in LABELS.items()}
    told = [f"{label} {share}" for label, share in shares.items() if share not in ("", "0.0 %")]
    return WAITED.format(each="; ".join(told)) if told else ""


def waited(found: Iterable[Rows], *names: str) -> str:
    """The share of the time that servers waited with these methods, in the mean of all runs of each; empty if that is
    not known.
    """
    rows = [row for each in found for row in each.items()]
    known = [
        [share for (_, method), row in rows if method == name and SHARE in row for share in values(row, SHARE)]
        for name in names
    ]
    means = [100 * fmean(shares) for shares in known if shares]
    return f"{between(f'{min(means):.1f}', f'{max(means):.1f}')} %" if means else ""
