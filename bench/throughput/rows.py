"""Compares the rows of a result file: figures of one method with another's, and scores at equal cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import Literal

from bench._lib.methods.ratios import Ratio, difference, ratio
from bench._lib.methods.spent import worth_at
from bench._lib.time_to_score import Row, Rows, workloads

BASE = "gepa_sync"
MERGING_PEER = "agentdescent_merging"
"""Another project's method that merges what its workers write, as our defaults do."""
ESTIMATED, KNOWN = "gepa_pxn_8x8", "gepa_pxn_4x4"
"""The PxN width whose rounds outlast the windows, and the width from which its rate is estimated."""


def by_server(rows: Sequence[Row]) -> dict[str, Rows]:
    """The rows of each server, in the order of the file."""
    found: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        found.setdefault(row["server"], {})[row["workload"], row["method"]] = row
    return {**found}


def methods(rows: Rows, start: str = "") -> list[str]:
    """The methods whose names begin with ``start``."""
    return list(dict.fromkeys(method for _, method in rows if method.startswith(start)))


def values(row: Row, figure: str) -> list[float]:
    """A figure of each repeat. Older files have no ``values`` and at most two repeats: the ends of their range."""
    return list((row["values"] if "values" in row else row["range"])[figure])


def beside(rows: Rows, method: str, others: Sequence[str], figure: str) -> Ratio | None:
    """A method's figure divided by that of the best of ``others``. None if all of these have 0 on some workload, or if
    one of the methods was not run.
    """
    if not others:
        return None
    return _ratio(
        tuple(
            (name, tuple(tuple(values(rows[name, each], figure)) for each in (method, *others)))
            for name in workloads(rows, method, *others)
        )
    )


Unit = Literal["calls", "tokens"]


def score_at_equal(rows: Rows, method: str, spent: Unit, part: float = 1.0) -> Ratio | None:
    """A method's held-out score minus synchronous gepa's, after all runs of both have spent as much as the one that
    spent least in total, or ``part`` of that. None if held-out scores are not known.
    """
    scores = scores_at_equal(rows, method, spent, part)
    return difference(scores) if scores else None


def scores_at_equal(rows: Rows, method: str, spent: Unit, part: float = 1.0) -> Mapping[str, Sequence[Sequence[float]]]:
    """The scores of `score_at_equal` by workload: those of the method's runs, and of synchronous gepa's. Empty if they
    are not known.
    """
    names = workloads(rows, method, BASE)
    if not all(rows[name, each].get("held_out") for name in names for each in (method, BASE)):
        return {}
    scores = {}
    for name in names:
        pair = [rows[name, each] for each in (method, BASE)]
        least = min(min(values(row, spent)) for row in pair)
        scores[name] = [[worth_at(run, spent, part * least) for run in row["held_out"]] for row in pair]
    return scores


@cache
def _ratio(rates: tuple[tuple[str, tuple[tuple[float, ...], ...]], ...]) -> Ratio | None:
    return ratio(dict(rates))


def over_estimated_pxn(rows: Rows, method: str) -> Ratio | None:
    """Proposals/min divided by those of gepa's best PxN width, with an estimated rate for `ESTIMATED`.

    The estimate assumes that a proposal of `ESTIMATED` costs as many output tokens as one of `KNOWN`. It stands for
    what windows that last for many of its rounds would show. None if one of the two widths was not run, or if proposals
    of `ESTIMATED` were counted on every workload.
    """
    widths = methods(rows, "gepa_pxn")
    if not {ESTIMATED, KNOWN} <= set(widths) or not lacks_rounds(rows):
        return None
    rates = []
    for name in workloads(rows, method, *widths):
        known = rows[name, KNOWN]
        share = known["proposals_per_min"] / known["output_tokens_per_s"]
        estimated = tuple(share * tokens for tokens in values(rows[name, ESTIMATED], "output_tokens_per_s"))
        counted = (tuple(values(rows[name, each], "proposals_per_min")) for each in widths if each != ESTIMATED)
        own = tuple(values(rows[name, method], "proposals_per_min"))
        rates.append((name, (own, *counted, estimated)))
    return _ratio(tuple(rates))


def lacks_rounds(rows: Rows) -> bool:
    """Whether no proposal of `ESTIMATED` fell into the time that was counted on some workload."""
    return any(rows[name, ESTIMATED]["proposals_per_min"] == 0 for name in workloads(rows, ESTIMATED))


def requests_beside(rows: Rows, method: str) -> float | None:
    """Requests per proposal divided by synchronous gepa's, as the mean over workloads; None if either has none."""
    pairs = [
        (rows[name, method]["requests_per_proposal"], rows[name, BASE]["requests_per_proposal"])
        for name in workloads(rows, method, BASE)
    ]
    if not pairs or any(own is None or theirs is None for own, theirs in pairs):
        return None
    return fmean(own / theirs for own, theirs in pairs)
