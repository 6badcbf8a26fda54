"""Figures of the pairs with 95 % intervals, for each world and over all worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Literal

import numpy as np

from bench._lib.intervals import interval
from bench._lib.stats import Interval
from bench.quality.pairs import GRID, UNREACHED, Lockstep, Pair, Streamed
from bench.quality.runs import SHIPPED_WORLDS

Content = dict[str, object]
LATER = 10.0
"""From this minute of lockstep on, a comparison no longer depends on the first lucky step."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""The quantiles that are reported of the times of single runs."""
Figure = Callable[[Pair, Streamed], float | None]


def summarise(pairs: Sequence[Pair], methods: Sequence[str]) -> Content:
    """The main figures of the last method, those of each method over the worlds it was run in, and those by world."""
    worlds = list(dict.fromkeys(pair.world for pair in pairs))
    by_method: dict[str, Content] = {}
    rows: list[Content] = []
    for method in methods:
        groups = [[pair for pair in pairs if pair.world == world and method in pair.streams] for world in worlds]
        groups = [group for group in groups if group]
        if not groups:
            continue
        by_method[method] = {"worlds": [group[0].world for group in groups], **_figures(groups, method)}
        rows += [{"world": group[0].world, "method": method, **_figures([group], method)} for group in groups]
    best = by_method[methods[-1]]
    return {
        "method": methods[-1],
        "headline": _headline(pairs, methods[-1]),
        "time_to_sync_score": best["time_to_sync_score"],
        "score_at_equal_tokens": best["score_at_equal_tokens"],
        "methods": by_method,
        "rows": rows,
        "curves": {"minutes": list(GRID), "worlds": {world: _curves(pairs, world) for world in worlds}},
    }


def _headline(pairs: Sequence[Pair], method: str) -> Content:
    """A few figures that summarise a method.

    Times are those to lockstep's final score on held-out rows, divided by lockstep's own: the median over all pairs in
    the shipped worlds, and the highest median of one of these worlds. Scores are those on held-out rows at equal
    tokens, minus lockstep's: the lower end of the interval over seeds, in the world where it is lowest. The harsh
    worlds are counted separately, from the tenth minute on.
    """
    groups = [
        [pair for pair in pairs if pair.world == world and method in pair.streams]
        for world in dict.fromkeys(pair.world for pair in pairs)
    ]
    shipped = [group for group in groups if group and group[0].world in SHIPPED_WORLDS]
    harsh = [group for group in groups if group and group[0].world not in SHIPPED_WORLDS]
    times = [[_held_out_ratio(pair, pair.streams[method]) for pair in group] for group in shipped]
    moments = list(pairs[0].sync.at)
    return {
        "time_median": float(np.median([ratio for group in times for ratio in group])) if times else None,
        "worst_world": max((float(np.median(group)) for group in times), default=None),
        "equal_tokens": {f"{moment:g}": _lowest(shipped, method, [moment]) for moment in moments},
        "harsh_worst": _lowest(harsh, method, [moment for moment in moments if moment >= LATER]),
    }


def _lowest(groups: Sequence[Sequence[Pair]], method: str, moments: Sequence[float]) -> float | None:
    """The lowest of the lower ends of the intervals of held-out leads, over the worlds and these moments."""
    ends = [
        interval([[_held_out_lead(pair, pair.streams[method], moment) for pair in group]]).low
        for group in groups
        for moment in moments
    ]
    return min((end for end in ends if isfinite(end)), default=None)


def _figures(groups: Sequence[Sequence[Pair]], method: str) -> Content:
    def over(figure: Figure, statistic: Literal["mean", "median"] = "mean", *, of_ratios: bool = False) -> Content:
        values = [
            [value for pair in group if (value := figure(pair, pair.streams[method])) is not None] for group in groups
        ]
        kept = [group for group in values if group]
        return (
            _json(interval(kept, statistic, of_ratios=of_ratios), statistic)
            if kept
            else {statistic: None, "ci95": None, "n": 0}
        )

    def time(figure: Figure) -> Content:
        return over(figure, "median", of_ratios=True)

    moments = list(groups[0][0].sync.at)
    last = moments[-1]
    unreached = sum(pair.streams[method].final_seconds is None for group in groups for pair in group)
    unworthy = sum(pair.streams[method].held_out_seconds is None for group in groups for pair in group)
    slowest = max(_time_ratio(pair, pair.streams[method]) for group in groups for pair in group)
    return {
        "time_to_sync_score": {**time(_time_ratio), "max": slowest, "not_reached": unreached},
        "time_to_sync_held_out": {
            **time(_held_out_ratio),
            "quantiles": _quantiles(
                [_held_out_ratio(pair, pair.streams[method]) for group in groups for pair in group]
            ),
            "not_reached": unworthy,
        },
        "time_to_most_of_it": time(_most_ratio),
        "score_at_equal_tokens": over(lambda pair, each: _lead(pair, each, last)),
        "held_out_at_equal_tokens": over(lambda pair, each: _held_out_lead(pair, each, last)),
        "by_minutes_of_sync": {f"{moment:g}": _equal_tokens(over, moment) for moment in moments},
        "evolution_rate": over(_evolution_rate, "median"),
        "score_at_fixed_time": {
            "sync": over(lambda pair, _: pair.sync.fixed.validation),
            "stream": over(lambda _, each: each.fixed.validation),
            "difference": over(lambda pair, each: each.fixed.validation - pair.sync.fixed.validation),
            "held_out_difference": over(lambda pair, each: each.fixed.held_out - pair.sync.fixed.held_out),
        },
        "sync_final_score": over(lambda pair, _: pair.sync.at[last].validation),
        "sync_final_held_out": over(lambda pair, _: pair.sync.at[last].held_out),
        "proposals_per_minute": {
            "sync": over(lambda pair, _: pair.sync.proposals_per_minute),
            "stream": over(lambda _, each: each.proposals_per_minute),
        },
        "tokens_per_minute_ratio": over(_spending),
        "cancelled_share": over(lambda _, each: each.cancelled_share),
    }


def _quantiles(ratios: Sequence[float]) -> Content:
    """For each of the `QUANTILES`, the smallest ratio that this share of the runs does not exceed."""
    found = np.quantile(ratios, QUANTILES, method="inverted_cdf")
    return {f"{share:g}": float(ratio) for share, ratio in zip(QUANTILES, found, strict=True)}


def _equal_tokens(over: Callable[[Figure], Content], moment: float) -> Content:
    return {
        "validation": over(lambda pair, each: _lead(pair, each, moment)),
        "held_out": over(lambda pair, each: _held_out_lead(pair, each, moment)),
    }


def _lead(pair: Pair, each: Streamed, moment: float) -> float:
    return each.at[moment].validation - pair.sync.at[moment].validation


def _held_out_lead(pair: Pair, each: Streamed, moment: float) -> float:
    return each.at[moment].held_out - pair.sync.at[moment].held_out


def _time_ratio(pair: Pair, each: Streamed) -> float:
    """The stream's time to lockstep's final score divided by lockstep's. A score that was never reached counts as
    `UNREACHED`, which may be too little.
    """
    return UNREACHED if each.final_seconds is None else each.final_seconds / pair.sync.final_seconds


def _held_out_ratio(pair: Pair, each: Streamed) -> float:
    """As `_time_ratio`, but for the best candidate's score on held-out rows."""
    return UNREACHED if each.held_out_seconds is None else each.held_out_seconds / pair.sync.held_out_seconds


def _most_ratio(pair: Pair, each: Streamed) -> float:
    return UNREACHED if each.most_seconds is None else each.most_seconds / pair.sync.most_seconds


def _evolution_rate(pair: Pair, each: Streamed) -> float | None:
    """The stream's gain divided by lockstep's at the fixed time; None if lockstep had gained nothing."""
    gained = pair.sync.fixed.validation - pair.sync.seed_score
    return (each.fixed.validation - pair.sync.seed_score) / gained if gained > 0 else None


def _spending(pair: Pair, each: Streamed) -> float:
    last = pair.sync.tokens[pair.minutes] / pair.minutes
    return each.tokens_per_minute / last


def _curves(pairs: Sequence[Pair], world: str) -> Content:
    """Median best validation scores; a stream that had already stopped keeps its last score."""
    chosen = [pair for pair in pairs if pair.world == world]

    def middle(runs: Sequence[Lockstep | Streamed]) -> list[float]:
        return [float(value) for value in np.median([run.curve for run in runs], axis=0)]

    streams = {name: middle([pair.streams[name] for pair in chosen]) for name in chosen[0].streams}
    return {"sync": middle([pair.sync for pair in chosen]), **streams}


def _json(value: Interval, statistic: str) -> Content:
    return {statistic: value.value, "ci95": value.as_json()["ci95"], "n": value.n}
