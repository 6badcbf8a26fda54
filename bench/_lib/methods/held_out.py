"""The worth of a method's candidates: their expected scores on rows that the method has never seen.

In a simulated world the expected score is computed (`bench._lib.house_style.expected`) instead of averaged over a few
answers. This is done after the runs, in the same way for all methods, for the candidate that each of them would have
returned at each moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

from bench._lib.house_style import expected
from bench._lib.methods.figures import Figures
from bench._lib.methods.recording_server import PRESET
from bench._lib.methods.spent import Spent
from bench._lib.methods.workloads import rows_like
from flowevolve._util.json_types import JSON
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

ROWS = 500


def worth(text: str) -> float:
    """The expected score of an instruction."""
    return expected(RulesWorld(PRESETS[PRESET]), text, _rows())


@cache
def _rows() -> Sequence[Mapping[str, JSON]]:
    return rows_like(ROWS)


def worths(texts: Iterable[str], processes: int) -> dict[str, float]:
    """The worth of each of these texts."""
    different = list(dict.fromkeys(texts))
    if not different:
        return {}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return dict(zip(different, pool.map(worth, different, chunksize=8), strict=True))


def curve(found: Figures, known: Mapping[str, float]) -> list[Spent]:
    """The worth of a method's best candidate over what the method had spent."""
    return [(each.seconds, each.calls, each.tokens, round(known[each.text], 4)) for each in found.moments]
