"""Rows of a result file, and the ratios between methods with their intervals."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, geometric_mean

from bench._lib.methods.figures import Figures
from bench._lib.stats import Spread, spread

RESAMPLES = 2000
Runs = Mapping[tuple[str, str], Sequence[Figures]]
"""For each workload and method on one server, the figures of each repeat."""
Rates = Mapping[str, Sequence[Sequence[float]]]
"""For each workload, the rate of each compared method in each repeat."""
_BESIDE = ("plain", "careful", "flashevolve", "lockstep")
"""What is compared with synchronous gepa beside the stream."""
FIGURES = tuple(name for name in Figures.__slots__ if name not in ("curve", "moments"))


@dataclass(frozen=True, slots=True)
class Ratio:
    """A mean over workloads of one method beside another, with its 95 % interval."""

    mean: float
    low: float
    high: float
    by_workload: Mapping[str, float]


def row(server: str, workload: str, method: str, repeats: Sequence[Figures]) -> dict[str, object]:
    """A row of the result file: means over the repeats, and the values and the range of each figure."""
    values = {name: [getattr(each, name) for each in repeats] for name in FIGURES}
    known = {name: [value for value in each if value is not None] for name, each in values.items()}
    spreads: dict[str, Spread] = {name: spread(each) for name, each in known.items() if each}
    return {
        "server": server,
        "workload": workload,
        "method": method,
        **{name: fmean(each) if each else None for name, each in known.items()},
        "repeats": len(repeats),
        "values": known,
        "range": {name: [each.low, each.high] for name, each in spreads.items()},
        "curves": [each.curve for each in repeats],
    }


def ratios(suffix: str, runs: Runs) -> dict[str, Ratio | None]:
    """The ratios by their names in the result file; None where one of the two methods was not run."""
    pxn = tuple(dict.fromkeys(method for _, method in runs if method.startswith("gepa_pxn")))

    def proposals(*methods: str) -> Rates:
        return _rates(runs, methods, lambda each: each.proposals_per_min)

    return {
        f"stream_vs_gepa_sync_{suffix}": ratio(proposals("stream", "gepa_sync")),
        f"stream_vs_gepa_pxn_{suffix}": ratio(proposals("stream", *pxn)),
        f"stream_vs_combee_{suffix}": ratio(proposals("stream", "combee_10", "combee_40")),
        f"stream_vs_agentdescent_{suffix}": ratio(proposals("stream", "agentdescent")),
        **{f"{name}_vs_gepa_sync_{suffix}": ratio(proposals(name, "gepa_sync")) for name in _BESIDE},
        f"saturation_{suffix}": ratio(_rates(runs, ("stream", "ceiling"), lambda each: each.output_tokens_per_s)),
        **{
            f"{name}_saturation_{suffix}": ratio(_rates(runs, (name, "ceiling"), lambda each: each.output_tokens_per_s))
            for name in _BESIDE
            if name != "lockstep"
        },
    }


def _rates(runs: Runs, methods: Sequence[str], rate: Callable[[Figures], float]) -> Rates:
    """The rates of these methods on the workloads that all of them were run on."""
    workloads = dict.fromkeys(workload for workload, _ in runs)
    return {
        workload: [[rate(each) for each in runs[workload, method]] for method in methods]
        for workload in workloads
        if all((workload, method) in runs for method in methods)
    }


def ratio(rates: Rates) -> Ratio | None:
    """The first method's over that of the best of the others, on each workload the one that is best there: the
    geometric mean over workloads. None without any workload, or where nothing was achieved to compare with.
    """
    if not rates or any(max(map(fmean, others), default=0.0) <= 0 for _, *others in rates.values()):
        return None
    return compared(rates, _quotient, _geometric_mean)


def difference(scores: Rates) -> Ratio | None:
    """The first method's score less the other's, the mean over workloads; None without any workload."""
    return compared(scores, lambda each: fmean(each[0]) - fmean(each[1]), fmean) if scores else None


def compared(
    rates: Rates, compare: Callable[[Sequence[Sequence[float]]], float], mean: Callable[[Iterable[float]], float]
) -> Ratio:
    """The mean over workloads of what comparing the methods on each gives.

    The interval is by the bootstrap: workloads are drawn anew and, in each, repeats.
    """
    rng, each_rates = random.Random(0), list(rates.values())
    means = sorted(
        mean([compare([rng.choices(list(values), k=len(values)) for values in drawn]) for drawn in draws])
        for draws in (rng.choices(each_rates, k=len(each_rates)) for _ in range(RESAMPLES))
    )
    low, high = means[round(0.025 * (RESAMPLES - 1))], means[round(0.975 * (RESAMPLES - 1))]
    by_workload = {workload: compare(each) for workload, each in rates.items()}
    return Ratio(mean(by_workload.values()), low, high, by_workload)


def _quotient(rates: Sequence[Sequence[float]]) -> float:
    own, *others = (fmean(each) for each in rates)
    return own / max(*others, 1e-9)


def _geometric_mean(quotients: Iterable[float]) -> float:
    found = list(quotients)
    return geometric_mean(found) if min(found) > 0 else 0.0


def as_json(found: Mapping[str, Ratio | None]) -> dict[str, object]:
    """``ratios`` as plain numbers, and ``intervals`` beside them."""
    return {
        "ratios": {name: None if each is None else each.mean for name, each in found.items()},
        "intervals": {name: asdict(each) for name, each in found.items() if each is not None},
    }
