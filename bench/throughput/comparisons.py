"""The ratios of the page between methods, each a geometric mean over workloads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bench._lib.methods.process import CEILING
from bench._lib.methods.ratios import Ratio
from bench._lib.text import ranged
from bench._lib.time_to_score import Rows
from bench.throughput.rows import BASE, beside, methods

ON_ONE_CLOCK, IN_REAL_TIME = "stream_vs_lockstep", "stream_real_vs_gepa_sync"
PROPOSALS, TOKENS = "proposals_per_min", "output_tokens_per_s"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A method's figure divided by that of the method named ``others`` or, if there is none, of the best method whose
    name begins with ``others``.
    """

    label: str
    method: str
    others: str
    figure: str = PROPOSALS

    def found(self, rows: Rows) -> Ratio | None:
        found = methods(rows, self.others)
        return beside(rows, self.method, [self.others] if self.others in found else found, self.figure)


COMPARISONS: Mapping[str, Comparison] = {
    "stream_vs_gepa_sync": Comparison("`stream` over synchronous gepa, proposals/min", "stream", BASE),
    "plain_vs_gepa_sync": Comparison("`plain` over synchronous gepa", "plain", BASE),
    "careful_vs_gepa_sync": Comparison("`careful` over synchronous gepa", "careful", BASE),
    "flashevolve_vs_gepa_sync": Comparison("`flashevolve` over synchronous gepa", "flashevolve", BASE),
    IN_REAL_TIME: Comparison("`stream` in real time, as gepa, over synchronous gepa", "stream_real", BASE),
    "stream_vs_gepa_pxn": Comparison("`stream` over gepa's best PxN width", "stream", "gepa_pxn"),
    "plain_vs_gepa_pxn": Comparison("`plain` over gepa's best PxN width", "plain", "gepa_pxn"),
    "stream_vs_dspy_gepa": Comparison("`stream` over dspy.GEPA", "stream", "dspy_gepa"),
    "stream_vs_agentdescent": Comparison("`stream` over agentdescent", "stream", "agentdescent"),
    "stream_vs_turbogepa": Comparison("`stream` over TurboGEPA", "stream", "turbogepa"),
    "stream_vs_combee": Comparison("`stream` over Combee", "stream", "combee"),
    ON_ONE_CLOCK: Comparison("`stream` over our lockstep, which has the same clock", "stream", "lockstep"),
    "lockstep_vs_gepa_sync": Comparison("our lockstep over synchronous gepa", "lockstep", BASE),
    "saturation": Comparison("`stream`: output tokens/s over those of load without end", "stream", CEILING, TOKENS),
    **{
        f"{name}_saturation": Comparison(f"`{name}`: the same", name, CEILING, TOKENS)
        for name in ("plain", "careful", "flashevolve")
    },
}


def as_interval(found: Ratio | None, decimals: int = 2) -> str:
    """The mean with its interval, or alone if there is but one workload; for a mean of 0, the workloads without any."""
    if found is None:
        return "–"
    if found.mean == 0:
        return f"none on {', '.join(name for name, each in found.by_workload.items() if each <= 0)}"
    if math.isinf(found.high):
        return f"{found.mean:.{decimals}f}"
    return ranged({"median": found.mean, "low": found.low, "high": found.high}, decimals)


def range_of(found: Ratio) -> str:
    """The smallest and the largest ratio of any workload."""
    each = found.by_workload.values()
    return f"{min(each):.1f} to {max(each):.1f}"
