"""Fits a profile of the simulator to what was measured of a server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev

from flowevolve.core.model import CHARS_PER_TOKEN
from flowevolve.llm.scheduling.rate_headers import LIMIT_KINDS, allowances
from flowevolve.sim.calibration.measuring import CONTEXT, LONG, PROMPT, SHORT, Measured
from flowevolve.sim.profiles import APIProfile, BatchingProfile, OutputLength, Profile
from flowevolve.sim.service_model import BLOCK_TOKENS, count_tokens

FEW = 4
BATCHES = 1.25
"""A server is taken to batch if answers take at least this many times as long at the largest load as with `FEW`
requests or fewer.
"""
CACHED = 0.6
"""A server is taken to cache prompts if a prompt that comes again takes at most this share of the time of a new one."""
USUAL_SEQUENCES = 256
"""The requests that a vLLM works on at a time, if it is not told another number and has no more memory than most."""
USUAL_CACHE_BLOCKS = 20_000
THINKS = 1.5
"""A model is taken to think if its answers have more than this many times the tokens of their texts; tokenizers differ
by less.
"""
MOST_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Fitted:
    """A profile, and what it assumes because it was not observed, each in a sentence."""

    profile: Profile
    assumed: Sequence[str]


def fit(measured: Measured, cache_tokens: int | None = None) -> Fitted:
    """The profile that follows from the measurements.

    ``cache_tokens`` is how many tokens the server says that its prefix cache holds, if it says so. A server that does
    is a vLLM, and batches.
    """
    few = [load.seconds_of_answer for load in measured.loads if load.requests <= FEW]
    many = [load.seconds_of_answer for load in measured.of(measured.requests()[-1])]
    if cache_tokens is not None or fmean(many) >= BATCHES * fmean(few):
        return _batching(measured, cache_tokens)
    return _api(measured)


def _batching(measured: Measured, cache_tokens: int | None) -> Fitted:
    assumed: list[str] = []
    largest, sequences = measured.requests()[-1], measured.places
    if sequences is None:
        sequences = max(USUAL_SEQUENCES, largest)
        assumed.append(f"it works on {sequences} requests at a time: no queue was seen with {largest}")
    loads = [requests for requests in measured.requests() if requests <= sequences]
    context = _context_seconds(measured)
    steps = _growing(
        [(requests, measured.seconds_of_step(requests) - context * requests * _usual_context()) for requests in loads]
    )
    slope = (steps[-1][1] - steps[-2][1]) / (steps[-1][0] - steps[-2][0]) if len(steps) > 1 else 0.0
    blocks = 0 if cache_tokens is None else cache_tokens // BLOCK_TOKENS
    if cache_tokens is None and _keeps_prompts(measured):
        blocks = USUAL_CACHE_BLOCKS
        assumed.append(f"its prefix cache holds {blocks * BLOCK_TOKENS:,} tokens")
    profile = BatchingProfile(
        output=_thinking(measured),
        step_seconds=steps,
        per_sequence_seconds=slope,
        prefill_seconds_per_token=_prefill_seconds(measured),
        max_num_seqs=sequences,
        cache_blocks=blocks,
        context_seconds_per_token=context,
    )
    return Fitted(profile, assumed)


def _api(measured: Measured) -> Fitted:
    answers = [answer for load in measured.loads for each in (load.short, load.long) for answer in each.answers]
    per_token = max(
        0.0,
        (
            median(answer.seconds for load in measured.loads for answer in load.long.answers)
            - median(answer.seconds for load in measured.loads for answer in load.short.answers)
        )
        / max(1, LONG - SHORT),
    )
    firsts = [max(1e-4, answer.seconds - per_token * answer.usage.completion_tokens) for answer in answers]
    logs = [math.log(first) for first in firsts]
    limits = allowances(answers[-1].headers)
    assumed = [f"{kind} a minute have no limit: its answers name none" for kind in LIMIT_KINDS if kind not in limits]
    profile = APIProfile(
        output=_thinking(measured),
        first_token_seconds=median(firsts),
        first_token_sigma=pstdev(logs),
        per_token_seconds=per_token,
        requests_per_minute=limits["requests"].limit if "requests" in limits else math.inf,
        tokens_per_minute=limits["tokens"].limit if "tokens" in limits else math.inf,
    )
    return Fitted(profile, assumed)


def _usual_context() -> float:
    """The tokens that a request had in its context on average while steps were measured."""
    return PROMPT / CHARS_PER_TOKEN + (SHORT + LONG) / 2


def _context_seconds(measured: Measured) -> float:
    """How much longer a step takes for each token in the contexts of all requests."""
    if not measured.contexts:
        return 0.0
    requests = measured.contexts[0].requests
    longer = median(load.seconds_of_step for load in measured.contexts)
    tokens = requests * (CONTEXT - PROMPT) / CHARS_PER_TOKEN
    return max(0.0, longer - measured.seconds_of_step(requests)) / tokens


def _growing(steps: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """The steps, raised where a step with more requests took less time than one with fewer: such a fall is noise."""
    least, grown = 0.0, []
    for requests, seconds in steps:
        least = max(least, seconds, 1e-6)
        grown.append((requests, round(least, 7)))
    return tuple(grown)


def _prefill_seconds(measured: Measured) -> float:
    """The slope of seconds over prompt tokens. A token has `CHARS_PER_TOKEN` characters, as in the simulator."""
    points = [
        (characters / CHARS_PER_TOKEN, median(answer.seconds for answer in answers))
        for characters, answers in measured.prefills.items()
    ]
    mean_tokens, mean_seconds = (fmean(column) for column in zip(*points, strict=True))
    above = sum((tokens - mean_tokens) * (seconds - mean_seconds) for tokens, seconds in points)
    return max(0.0, above / sum((tokens - mean_tokens) ** 2 for tokens, _ in points))


def _keeps_prompts(measured: Measured) -> bool:
    longest = measured.prefills[max(measured.prefills)]
    new, old = (median(answer.seconds for answer in answers) for answers in (longest, measured.again))
    return old <= CACHED * new


def _thinking(measured: Measured) -> OutputLength:
    """How many tokens answers have beyond their text; none unless most answers have clearly more tokens than their text
    accounts for.
    """
    pairs = [(count_tokens(answer.text), answer.usage.completion_tokens) for answer in measured.free]
    hidden = [billed - visible for visible, billed in pairs if billed > THINKS * visible + SHORT]
    if len(hidden) * 2 <= len(pairs):
        return OutputLength(0.0, 0.0, MOST_TOKENS)
    logs = [math.log(tokens) for tokens in hidden]
    return OutputLength(round(math.exp(fmean(logs))), round(pstdev(logs), 3), MOST_TOKENS)
