"""How fast a simulated server is. Each parameter has its source or its reason beside it.

Qwen3-8B on one H100 follows from the roofline model: 8.2e9 bf16 parameters are 16.4 GB, and reading them once per step
at 3.35 TB/s takes 4.9 ms. Scheduling, kernel launches and sampling bring a step at batch size 1 to about 7.5 ms. The KV
cache takes 36 layers x 2 x 8 heads x 128 x 2 bytes = 147,456 bytes a token, so a sequence of 1,400 tokens adds 0.06 ms
to a step. Prefill costs 16.4 GFLOP a token, which at half of 990 dense bf16 TFLOP/s takes 0.033 ms.
"""

from __future__ import annotations

import json
import math
import random
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError, with_config

from flowevolve._util.errors import InputError, reason_of
from flowevolve._util.registry import describe_validation, did_you_mean

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0)]
_CLOSED = ConfigDict(extra="forbid")


@with_config(_CLOSED)
@dataclass(frozen=True, slots=True)
class OutputLength:
    """The output tokens of an answer: its visible text and a lognormal number of hidden tokens (a model's thinking).

    ``median`` and ``sigma`` are those of the hidden tokens; ``most`` bounds all output tokens.
    """

    median: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    sigma: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    most: Annotated[int, Field(gt=0)]

    def draw(self, rng: random.Random, visible: int) -> int:
        """Draw the billed output tokens of an answer whose visible text has ``visible`` tokens; at least one."""
        hidden = self.median * math.exp(self.sigma * rng.gauss(0.0, 1.0)) if self.median else 0.0
        return max(1, min(self.most, visible + round(hidden)))


def _checked_steps(value: object) -> float | tuple[tuple[int, float], ...]:
    """Check the seconds of a step as a file gives them."""
    if not isinstance(value, list | tuple):
        return _NUMBER.validate_python(value)
    points = _POINTS.validate_python(value)
    if not points or any(first >= second for (first, _), (second, _) in pairwise(points)):
        raise ValueError(
            "has to be a list of pairs of a number of requests and seconds, in which the numbers of requests rise"
        )
    return points


_NUMBER = TypeAdapter[float](Seconds)
_POINTS = TypeAdapter[tuple[tuple[int, float], ...]](tuple[tuple[int, Seconds], ...])
Steps = Annotated[float | tuple[tuple[int, float], ...], PlainValidator(_checked_steps)]
"""The seconds of a step: one number, or points, each of a number of running requests and the seconds with these."""


@with_config(_CLOSED)
@dataclass(frozen=True, slots=True)
class BatchingProfile:
    """A server that batches continuously: all running requests advance one token per step.

    A step takes ``step_seconds + per_sequence_seconds * running`` seconds, plus ``context_seconds_per_token`` for each
    token in the contexts of the running requests, which are their prompts and their answers so far. Each uncached
    prompt token adds ``prefill_seconds_per_token`` to the next step of all requests.

    For a server that was measured, ``step_seconds`` may be a list of points: a number of running requests and the
    seconds of a step with these, by increasing numbers of requests. Between the points the seconds are interpolated
    linearly; beyond the last, each request adds ``per_sequence_seconds``.
    """

    output: OutputLength
    step_seconds: Steps
    per_sequence_seconds: Seconds
    prefill_seconds_per_token: Seconds
    max_num_seqs: Annotated[int, Field(gt=0)]
    cache_blocks: Annotated[int, Field(ge=0)]
    """The capacity of the prefix cache, in blocks of 16 tokens."""
    context_seconds_per_token: Seconds = 0.0

    def seconds_of_step(self, running: int) -> float:
        """The seconds of a step with this many requests running, without what their contexts add."""
        if not isinstance(self.step_seconds, tuple):
            return self.step_seconds + self.per_sequence_seconds * running
        after = bisect_right(self.step_seconds, (running, math.inf))
        if after == 0:
            return self.step_seconds[0][1]
        load, seconds = self.step_seconds[after - 1]
        slope = self.per_sequence_seconds
        if after < len(self.step_seconds):
            next_load, next_seconds = self.step_seconds[after]
            slope = (next_seconds - seconds) / (next_load - load)
        return seconds + slope * (running - load)

    def faster(self, times: float) -> BatchingProfile:
        """The same server, ``times`` as fast in everything that it does; texts and their lengths stay the same."""
        steps: Steps = self.step_seconds
        steps = tuple((load, each / times) for load, each in steps) if isinstance(steps, tuple) else steps / times
        return replace(
            self,
            step_seconds=steps,
            per_sequence_seconds=self.per_sequence_seconds / times,
            prefill_seconds_per_token=self.prefill_seconds_per_token / times,
            context_seconds_per_token=self.context_seconds_per_token / times,
        )


@with_config(_CLOSED)
@dataclass(frozen=True, slots=True)
class APIProfile:
    """A remote API whose latency does not depend on its load.

    Requests beyond its rate limits are answered with status 429 and Retry-After.
    """

    output: OutputLength
    first_token_seconds: Seconds
    """The median time to the first token, which is lognormal with ``first_token_sigma``."""
    first_token_sigma: Seconds
    per_token_seconds: Seconds
    requests_per_minute: Rate
    tokens_per_minute: Rate

    def faster(self, times: float) -> APIProfile:
        """As `BatchingProfile.faster`."""
        return replace(
            self,
            first_token_seconds=self.first_token_seconds / times,
            per_token_seconds=self.per_token_seconds / times,
            requests_per_minute=self.requests_per_minute * times,
            tokens_per_minute=self.tokens_per_minute * times,
        )


Profile = BatchingProfile | APIProfile


ABOUT_PROFILES: Mapping[str, str] = {
    "qwen3-8b-h100": "A vLLM with Qwen3-8B on one H100: it batches, so it likes many requests at a time.",
    "gpt-4o-mini-api": "A remote API, whose answers come as fast under load, up to its limits a minute.",
    "fast-demo": "The first at 20 times its speed, to watch a run in real time.",
    "instant": "No latency and no limits: only what the client itself takes is left.",
}
_QWEN3_8B_H100 = BatchingProfile(
    # FlashEvolve, table 1: 963 output tokens/s at 1.9 proposals/min on IFBench make 30,000 tokens a proposal. With
    # 7 calls a proposal and validation of the accepted ones, that is 600 to 1,000 a call; figure 2b has the tail.
    output=OutputLength(median=450.0, sigma=0.8, most=8192),
    step_seconds=0.0075,
    per_sequence_seconds=0.00006,
    prefill_seconds_per_token=0.000033,
    max_num_seqs=256,  # vLLM's own default on this class of GPU
    cache_blocks=22_000,  # (80 GB x 0.9 - 16.4 GB - activations) / 147,456 bytes / 16 tokens
)
PROFILES: Mapping[str, Profile] = {
    "qwen3-8b-h100": _QWEN3_8B_H100,
    "gpt-4o-mini-api": APIProfile(
        # No thinking; table 1's 361 tokens/s at 1.7 proposals/min is about 250 tokens a call.
        output=OutputLength(median=110.0, sigma=0.6, most=4096),
        first_token_seconds=0.45,  # published measurements of this model: 0.4 to 0.5 s
        first_token_sigma=0.35,
        per_token_seconds=0.0125,  # 80 tokens/s, likewise
        requests_per_minute=5000.0,  # the provider's usage tier 2
        tokens_per_minute=2_000_000.0,
    ),
    "fast-demo": _QWEN3_8B_H100.faster(20),
    "instant": APIProfile(
        # No latency and no limits, so that only the client's own cost remains.
        output=OutputLength(median=0.0, sigma=0.0, most=8192),
        first_token_seconds=0.0,
        first_token_sigma=0.0,
        per_token_seconds=0.0,
        requests_per_minute=math.inf,
        tokens_per_minute=math.inf,
    ),
}


def find_profile(named: str) -> Profile:
    """The profile of this name, or the one in a file, ``NAME.toml`` or ``NAME.json``, whose keys are the fields of
    `BatchingProfile` or of `APIProfile`.

    Raises:
        InputError: if there is no such profile, or the file can't be used.
    """
    if named in PROFILES:
        return PROFILES[named]
    path = Path(named)
    if path.suffix not in _READERS:
        raise InputError(
            f"unknown profile {named!r}; {did_you_mean(named, list(PROFILES))}, or name a file that holds one, which "
            "ends in .toml or .json"
        )
    table = _read(path)
    kinds: tuple[type[Profile], ...] = (BatchingProfile, APIProfile)
    kind = max(kinds, key=lambda each: len(table.keys() & {*_keys(each)}))
    try:
        return TypeAdapter[Profile](kind).validate_python(table)
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        known = _keys(kind if len(place) == 1 else OutputLength)
        raise InputError(f"{path}: {describe_validation(error, known=known)}") from None


_READERS = {".toml": tomllib.loads, ".json": json.loads}


def _keys(kind: type[Profile | OutputLength]) -> list[str]:
    return [field.name for field in fields(kind)]


def _read(path: Path) -> Mapping[str, object]:
    try:
        table: object = _READERS[path.suffix](path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such file; name one that holds a profile, or one of {', '.join(PROFILES)}"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: the profile can't be read: {reason_of(error)}") from None
    if not isinstance(table, Mapping):
        raise InputError(f"{path}: a profile is a table of settings, such as step_seconds = 0.0075")
    return table
