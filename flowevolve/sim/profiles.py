"""How fast a simulated server is. Each parameter has its source or its reason beside it.

Qwen3-8B on one H100 follows from the roofline model: 8.2e9 bf16 parameters are 16.4 GB, and reading them once per step
at 3.35 TB/s takes 4.9 ms. Scheduling, kernel launches and sampling bring a step at batch size 1 to about 7.5 ms. The KV
cache takes 36 layers x 2 x 8 heads x 128 x 2 bytes = 147,456 bytes a token, so a sequence of 1,400 tokens adds 0.06 ms
to a step. Prefill costs 16.4 GFLOP a token, which at half of 990 dense bf16 TFLOP/s takes 0.033 ms.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class OutputLength:
    """The output tokens of an answer: its visible text and a lognormal number of hidden tokens (a model's thinking).

    ``median`` and ``sigma`` are those of the hidden tokens; ``most`` bounds all output tokens.
    """

    median: float
    sigma: float
    most: int

    def draw(self, rng: random.Random, visible: int) -> int:
        """Draw the billed output tokens of an answer whose visible text has ``visible`` tokens; at least one."""
        hidden = self.median * math.exp(self.sigma * rng.gauss(0.0, 1.0)) if self.median else 0.0
        return max(1, min(self.most, visible + round(hidden)))


Steps = float | tuple[tuple[int, float], ...]
"""Seconds of a step: one number, or points of requests that run and seconds."""


@dataclass(frozen=True, slots=True)
class BatchingProfile:
    """A server that batches continuously: all running requests advance one token per step.

    A step takes ``step_seconds + per_sequence_seconds * running`` seconds, and ``context_seconds_per_token`` for each
    token that the running requests have in their contexts, prompts and answers so far. Each uncached prompt token adds
    ``prefill_seconds_per_token`` to the next step of all requests.

    Of a server that was measured, ``step_seconds`` may be a list: the seconds of a step with so many requests running,
    by increasing numbers of requests. In between they lie on straight lines; beyond the last, each request adds
    ``per_sequence_seconds``.
    """

    output: OutputLength
    step_seconds: Steps
    per_sequence_seconds: float
    prefill_seconds_per_token: float
    max_num_seqs: int
    cache_blocks: int
    """The capacity of the prefix cache, in blocks of 16 tokens."""
    context_seconds_per_token: float = 0.0

    def seconds_of_step(self, running: int) -> float:
        """The seconds of a step with so many requests running, without what their contexts add."""
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
        """The same server, so many times as fast in all that it does; texts and their lengths stay the same."""
        steps: Steps = self.step_seconds
        steps = tuple((load, each / times) for load, each in steps) if isinstance(steps, tuple) else steps / times
        return replace(
            self,
            step_seconds=steps,
            per_sequence_seconds=self.per_sequence_seconds / times,
            prefill_seconds_per_token=self.prefill_seconds_per_token / times,
            context_seconds_per_token=self.context_seconds_per_token / times,
        )


@dataclass(frozen=True, slots=True)
class APIProfile:
    """A remote API whose latency does not depend on its load.

    Requests beyond its rate limits are answered with status 429 and Retry-After.
    """

    output: OutputLength
    first_token_seconds: float
    """The median time to the first token, which is lognormal with ``first_token_sigma``."""
    first_token_sigma: float
    per_token_seconds: float
    requests_per_minute: float
    tokens_per_minute: float

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
