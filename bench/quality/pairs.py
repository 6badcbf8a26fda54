"""Lockstep and the streams with one seed in one world, compared with each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.quality.runs import SYNC, WORLDS, Goals, Trace, evolve

MOMENTS = (5.0, 10.0, 30.0, 60.0, 180.0)
"""Minutes of lockstep at which scores are compared at equal tokens: at those that lockstep had spent by then."""
FIXED = 30.0
"""Minutes at which scores are compared at equal time, as in FlashEvolve's table 2."""
GRID = (0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 180.0)
"""Minutes at which the best score is noted."""
UNREACHED = 2.0
"""A stream is given up if it has not reached lockstep's final score in this many times lockstep's time."""
MOST = 0.95
"""A share of lockstep's gain. The time to it depends less on luck at the very end than the time to all of the gain."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The best candidate's validation score, by which it was chosen, and its expected score on held-out rows."""

    validation: float
    held_out: float


@dataclass(frozen=True, slots=True)
class Lockstep:
    """A run of synchronous GEPA."""

    seed_score: float
    final_seconds: float
    """When its final validation score was first reached."""
    held_out_seconds: float
    """When its best candidate first scored as high on held-out rows as its last one, within `PRECISION`."""
    most_seconds: float
    fixed: Scores
    at: Mapping[float, Scores]
    """Scores after this many minutes."""
    tokens: Mapping[float, int]
    proposals_per_minute: float
    curve: tuple[float, ...]
    """Validation scores at the minutes of `GRID`."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """A stream, compared with the lockstep run of the same seed."""

    final_seconds: float | None
    """When it reached lockstep's final score; None if it never did, or was given up."""
    held_out_seconds: float | None
    """When its best candidate first scored as high on held-out rows as lockstep's last one; None if it never did."""
    most_seconds: float | None
    fixed: Scores
    at: Mapping[float, Scores]
    """Scores at the tokens that lockstep had spent after this many minutes."""
    minutes: float
    """How long it ran: until it had reached its goals, or to the end."""
    proposals_per_minute: float
    tokens_per_minute: float
    cancelled_share: float
    """The share of its requests that were cancelled. They are charged as answered ones are, on average, because nobody
    knows what the server had written for them.
    """
    curve: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """All results of one seed in one world."""

    world: str
    seed: int
    minutes: float
    sync: Lockstep
    streams: Mapping[str, Streamed]


def compare(name: str, seed: int, minutes: float, methods: Mapping[str, Mapping[str, object]]) -> Pair:
    world = WORLDS[name]
    sync = evolve(world, SYNC, seed, minutes)
    moments = (*(moment for moment in MOMENTS if moment < minutes), minutes)
    base = _lockstep(sync, moments)
    last = max(base.final_seconds, base.held_out_seconds)
    goals = Goals(sync.final, sync.final_held_out, base.tokens[minutes], min(FIXED, minutes) * 60, UNREACHED * last)
    streams = {
        method: _streamed(evolve(world, settings, seed, minutes, goals), sync, base)
        for method, settings in methods.items()
    }
    return Pair(name, seed, minutes, base, streams)


def _lockstep(trace: Trace, moments: tuple[float, ...]) -> Lockstep:
    reached, worth = trace.time_to(trace.final), trace.time_to_held_out(trace.final_held_out)
    most = trace.time_to(_most(trace))
    assert reached is not None
    assert worth is not None
    assert most is not None
    return Lockstep(
        seed_score=trace.gains[0].score,
        final_seconds=reached,
        held_out_seconds=worth,
        most_seconds=most,
        fixed=_scores(trace, FIXED * 60),
        at={moment: _scores(trace, moment * 60) for moment in moments},
        tokens={moment: trace.tokens_at(moment * 60) for moment in moments},
        proposals_per_minute=_proposals_per_minute(trace),
        curve=_curve(trace),
    )


def _streamed(trace: Trace, sync: Trace, base: Lockstep) -> Streamed:
    minutes = trace.result.report.wall_seconds / 60
    requests = trace.result.llm.requests
    return Streamed(
        final_seconds=trace.time_to(sync.final),
        held_out_seconds=trace.time_to_held_out(sync.final_held_out),
        most_seconds=trace.time_to(_most(sync)),
        fixed=_scores(trace, FIXED * 60),
        at={moment: _scores(trace, trace.time_of(tokens)) for moment, tokens in base.tokens.items()},
        minutes=minutes,
        proposals_per_minute=_proposals_per_minute(trace),
        tokens_per_minute=trace.calls[-1][1] / minutes,
        cancelled_share=trace.result.cancelled / max(1, requests + trace.result.cancelled),
        curve=_curve(trace),
    )


def _most(trace: Trace) -> float:
    seed_score = trace.gains[0].score
    return seed_score + MOST * (trace.final - seed_score)


def _scores(trace: Trace, seconds: float) -> Scores:
    best = trace.best_at(seconds)
    return Scores(best.score, best.held_out)


def _proposals_per_minute(trace: Trace) -> float:
    report = trace.result.report
    return report.spent.proposals / (report.wall_seconds / 60)


def _curve(trace: Trace) -> tuple[float, ...]:
    return tuple(trace.best_at(minute * 60).score for minute in GRID)
