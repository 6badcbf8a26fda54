"""Rows of a result file, and the ratios between methods with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from bench._lib.intervals import interval
from bench._lib.methods.figures import Figures
from bench._lib.stats import Spread, spread
from bench._lib.time_to_score import Row, Rows, workloads

Rates = Mapping[str, Sequence[Sequence[float]]]
"""For each workload, the rate of each compared method in each repeat."""
_BESIDE = ("plain", "careful", "flashevolve", "lockstep")
"""The presets that are compared with synchronous gepa, as the stream is."""
FIGURES = tuple(name for name in Figures.__slots__ if name not in ("curve", "moments"))


@dataclass(frozen=True, slots=True)
class Ratio:
    """One method compared with another: a mean over workloads, with its 95 % interval.

    The interval is over workloads. Each contributes one value, computed from the means of its repeats. With only one
    workload the bounds are infinite; those of a quotient are 0 and infinity.
    """

    mean: float
    low: float
    high: float
    by_workload: Mapping[str, float]


def row(
    server: str, workload: str, method: str, repeats: Sequence[Figures], before: Row | None = None
) -> dict[str, object]:
    """A row of the result file: means over the repeats, and the values and the range of each figure. The repeats of an
    earlier row, ``before``, come first.
    """
    values = {name: [getattr(each, name) for each in repeats] for name in FIGURES}
    known = {name: [value for value in each if value is not None] for name, each in values.items()}
    curves = [each.curve for each in repeats]
    if before is not None:
        known = {name: [*before["values"][name], *each] for name, each in known.items()}
        curves = [*before["curves"], *curves]
    spreads: dict[str, Spread] = {name: spread(each) for name, each in known.items() if each}
    return {
        "server": server,
        "workload": workload,
        "method": method,
        **{name: fmean(each) if each else None for name, each in known.items()},
        "repeats": len(curves),
        "values": known,
        "range": {name: [each.low, each.high] for name, each in spreads.items()},
        "curves": curves,
    }


def ratios(suffix: str, rows: Rows) -> dict[str, Ratio | None]:
    """The ratios by their names in the result file; None where one of the two methods was not run."""
    pxn = tuple(dict.fromkeys(method for _, method in rows if method.startswith("gepa_pxn")))

    def proposals(*methods: str) -> Rates:
        return _rates(rows, methods, "proposals_per_min")

    def saturation(method: str) -> Ratio | None:
        return ratio(_rates(rows, (method, "ceiling"), "output_tokens_per_s"))

    return {
        f"stream_vs_gepa_sync_{suffix}": ratio(proposals("stream", "gepa_sync")),
        f"stream_vs_gepa_pxn_{suffix}": ratio(proposals("stream", *pxn)),
        f"stream_vs_combee_{suffix}": ratio(proposals("stream", "combee_10", "combee_40")),
        f"stream_vs_agentdescent_{suffix}": ratio(proposals("stream", "agentdescent")),
        **{f"{name}_vs_gepa_sync_{suffix}": ratio(proposals(name, "gepa_sync")) for name in _BESIDE},
        f"saturation_{suffix}": saturation("stream"),
        **{f"{name}_saturation_{suffix}": saturation(name) for name in _BESIDE if name != "lockstep"},
    }


def _rates(rows: Rows, methods: Sequence[str], figure: str) -> Rates:
    """A figure of these methods, on the workloads that all of them were run on."""
    return {name: [rows[name, each]["values"][figure] for each in methods] for name in workloads(rows, *methods)}


def ratio(rates: Rates) -> Ratio | None:
    """The first method's rate divided by that of whichever other method is best on the same workload: the geometric
    mean over workloads. None without any workload, or if on one of them no other method has a rate above 0.
    """
    if not rates or any(max(map(fmean, others), default=0.0) <= 0 for _, *others in rates.values()):
        return None
    quotients = {workload: _quotient(each) for workload, each in rates.items()}
    if min(quotients.values()) <= 0:
        return Ratio(0.0, 0.0, math.inf, quotients)
    found = interval([[math.log(each) for each in quotients.values()]])
    return Ratio(math.exp(found.value), math.exp(found.low), math.exp(found.high), quotients)


def difference(scores: Rates) -> Ratio | None:
    """The first method's score minus the other's, as the mean over workloads; None without any workload."""
    if not scores:
        return None
    differences = {workload: fmean(ours) - fmean(theirs) for workload, (ours, theirs) in scores.items()}
    found = interval([list(differences.values())])
    return Ratio(found.value, found.low, found.high, differences)


def _quotient(rates: Sequence[Sequence[float]]) -> float:
    own, *others = (fmean(each) for each in rates)
    return own / max(*others, 1e-9)


def as_json(found: Mapping[str, Ratio | None]) -> dict[str, object]:
    """``ratios`` as plain numbers, and ``intervals`` for those with finite bounds."""
    return {
        "ratios": {name: None if each is None else each.mean for name, each in found.items()},
        "intervals": {
            name: asdict(each) for name, each in found.items() if each is not None and math.isfinite(each.high)
        },
    }
