"""The figures of a run of a method: rates, requests in flight, and scores over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench._lib.methods.recording import Span
from bench._lib.methods.runs import Run
from flowevolve.core.model import CHARS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Moment:
    """A method would have returned ``text`` from ``seconds`` on. ``calls`` and ``tokens`` are its answered calls until
    then and their tokens, of prompts and answers; both include the seed's validation.
    """

    seconds: float
    calls: int
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run. Rates are per minute of the server's time; output tokens are those of answered calls."""

    proposals_per_min: float
    """A proposal is an answered reflection, whatever becomes of it. Where reflections are merged, the proposals that
    the method reports are counted instead.
    """
    proposals: int
    flows: int
    """The largest number of proposals that were under way at the same time."""
    validations_per_min: float
    """Validations that ran all examples; ``stopped_per_min`` counts those that were stopped before."""
    stopped_per_min: float
    accepted_per_min: float
    output_tokens_per_s: float
    mean_in_flight: float
    median_in_flight: float
    idle_share: float
    """The share of the time with at most one request in flight."""
    tokens_per_accepted: float | None
    requests_per_proposal: float | None
    best_score: float
    client_cpu_share: float
    """The share of a core that the method's process used in the measured window, estimated from its CPU time per call;
    ``server_cpu_share`` likewise for the server's process.
    """
    server_cpu_share: float
    held_up_share: float
    """The share of the real time in which the server's process was ready to run but had no core."""
    calls: int
    """The calls answered since the start of the run, with the seed's validation; ``tokens`` counts the tokens of their
    prompts and answers.
    """
    tokens: int
    client_cpu_s: float
    client_cpu_ms_per_call: float
    curve: tuple[tuple[float, float], ...] = field(repr=False)
    """The best score over time, as (seconds, score)."""
    moments: tuple[Moment, ...] = field(repr=False)


def figures(run: Run) -> Figures:
    seconds = run.end - run.start
    per_minute, real_seconds = 60 / seconds, seconds / run.speed
    answered = [span for span in run.spans if run.start < span.ended <= run.end and span.tokens is not None]
    proposals = _proposals(run, answered)
    accepted = sum(when > run.start for when, _ in run.accepted)
    tokens = sum(tokens_within(span, run.start, run.end) for span in run.spans)
    levels = in_flight(run.spans, run.start, run.end)
    calls = len(run.spans)
    share = len(answered) / max(1, calls) / real_seconds
    spent = _spent(run, run.end)
    return Figures(
        proposals_per_min=proposals * per_minute,
        proposals=proposals,
        flows=run.flows,
        validations_per_min=sum(when > run.start for when in run.validated) * per_minute,
        stopped_per_min=sum(when > run.start for when in run.stopped) * per_minute,
        accepted_per_min=accepted * per_minute,
        output_tokens_per_s=tokens / seconds,
        mean_in_flight=sum(level * lasted for level, lasted in levels) / seconds,
        median_in_flight=_median(levels),
        idle_share=sum(lasted for level, lasted in levels if level <= 1) / seconds,
        tokens_per_accepted=tokens / accepted if accepted else None,
        requests_per_proposal=len(answered) / proposals if proposals else None,
        best_score=max((score for _, score in run.accepted), default=0.0),
        client_cpu_share=run.client_cpu * share,
        server_cpu_share=run.server_cpu * share,
        held_up_share=run.held_up * run.speed / run.end,
        calls=spent[0],
        tokens=spent[1],
        client_cpu_s=run.client_cpu,
        client_cpu_ms_per_call=1000 * run.client_cpu / max(1, calls),
        curve=_best(run.accepted),
        moments=tuple(
            Moment(round(max(0.0, when), 1), *_spent(run, when), text) for when, text in run.best if when <= run.end
        ),
    )


def _spent(run: Run, until: float) -> tuple[int, int]:
    """The number of calls answered by this time, and the tokens of their prompts and answers."""
    answered = [span for span in run.spans if span.tokens is not None and span.ended <= until]
    return len(answered), sum(span.characters // CHARS_PER_TOKEN + (span.tokens or 0) for span in answered)


def _proposals(run: Run, answered: Sequence[Span]) -> int:
    if any(span.role == "merge" for span in run.spans):
        return sum(run.start < when <= run.end for when in run.proposed)
    return sum(span.role == "reflection" for span in answered)


def tokens_within(span: Span, start: float, end: float) -> float:
    """How many of an answer's tokens were written between these times, assuming an even pace."""
    if span.tokens is None or span.ended <= span.begun:
        return 0.0
    inside = min(span.ended, end) - max(span.begun, start)
    return span.tokens * max(0.0, inside) / (span.ended - span.begun)


def in_flight(spans: Sequence[Span], start: float, end: float) -> list[tuple[int, float]]:
    """How many requests the server had in flight between these times, as (requests, seconds) in chronological order."""
    times = ((time, by) for span in spans for time, by in ((span.begun, 1), (span.ended, -1)))
    changes = sorted((min(max(time, start), end), by) for time, by in times)
    levels: list[tuple[int, float]] = []
    level, since = 0, start
    for when, by in (*changes, (end, 0)):
        if when > since:
            levels.append((level, when - since))
            since = when
        level += by
    return levels


def _median(levels: Sequence[tuple[int, float]]) -> float:
    """The median of the requests in flight, weighted by time."""
    half, passed = sum(seconds for _, seconds in levels) / 2, 0.0
    for level, seconds in sorted(levels):
        passed += seconds
        if passed >= half:
            return float(level)
    return 0.0


def _best(accepted: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    curve: list[tuple[float, float]] = []
    for seconds, score in accepted:
        if not curve or score > curve[-1][1]:
            curve.append((round(max(0.0, seconds), 1), round(score, 4)))
    return tuple(curve)
