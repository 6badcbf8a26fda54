"""When a failed LLM call is tried again.

A pure policy: it is told what failed and for how long the backend has been silent, and reads no clock. Trouble of the
backend is waited out for as long as patience lasts, trouble with one request for a few attempts, and a request that
the backend understood and turned down is never repeated.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from flowevolve.errors import InputError
from flowevolve.llm.types import LLMError, OverloadedError, ServerError, UnreachableError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter.

    The first wait is ``base_seconds``, each later one ``multiplier`` times as long, up to ``max_seconds``; a wait the
    server asks for replaces it. Up to ``jitter`` times the backoff, or half of what the server asked for if that is
    longer, is added at random, so calls that failed together return spread out, and more so the longer the trouble
    lasts.

    Raises:
        InputError: if a value is out of range.
    """

    base_seconds: float = 1.0
    max_seconds: float = 30.0
    multiplier: float = 2.0
    jitter: float = 0.5
    server_error_attempts: int = 4
    """Attempts in all at a request that a living backend fails to serve."""
    patience_seconds: float = 300.0
    """How long a backend may be silent before it counts as gone."""

    def __post_init__(self) -> None:
        if not 0 < self.base_seconds <= self.max_seconds:
            raise InputError(f"retry: need 0 < base_seconds ({self.base_seconds}) <= max_seconds ({self.max_seconds})")
        if self.multiplier < 1:
            raise InputError(f"retry: multiplier is {self.multiplier}; a factor below 1 would shorten the waits")
        if not 0 <= self.jitter <= 1:
            raise InputError(f"retry: jitter is {self.jitter}; give a fraction from 0 to 1")
        if self.server_error_attempts < 1:
            raise InputError(f"retry: server_error_attempts is {self.server_error_attempts}; at least 1 is needed")
        if self.patience_seconds < 0:
            raise InputError(f"retry: patience_seconds is {self.patience_seconds}; it can't be negative")

    def decide(
        self, error: LLMError, attempt: int, silent_seconds: float, rng: random.Random, *, answers_others: bool = False
    ) -> float | None:
        """Seconds to wait before the next attempt, or None to give up.

        ``attempt`` counts from 1. ``silent_seconds`` is the time since the later of this call's first failure and the
        backend's last success with any call. ``answers_others`` says that the backend answered another call during
        this attempt: then a lost answer is this request's trouble (one too long for its timeout would otherwise be
        repeated for ever, as the others keep the backend from counting as silent).
        """
        match error:
            case OverloadedError():
                go_on = not self.exhausted(silent_seconds)
            case UnreachableError():
                go_on = not self.exhausted(silent_seconds) and not (answers_others and self._tried(attempt))
            case ServerError():
                go_on = not self._tried(attempt)
            case _:
                go_on = False
        return self._wait(error.retry_after, attempt, rng) if go_on else None

    def exhausted(self, silent_seconds: float) -> bool:
        """Whether a backend that has been silent for so long counts as gone."""
        return silent_seconds >= self.patience_seconds

    def _tried(self, attempt: int) -> bool:
        return attempt >= self.server_error_attempts

    def _wait(self, retry_after: float | None, attempt: int, rng: random.Random) -> float:
        backoff = self._backoff(attempt)
        # A server that asks for more than our patience is asked once more when patience ends.
        least = backoff if retry_after is None else min(retry_after, self.patience_seconds)
        return least + rng.random() * self.jitter * max(backoff, least / 2)

    def _backoff(self, attempt: int) -> float:
        try:
            return min(self.max_seconds, self.base_seconds * self.multiplier ** (attempt - 1))
        except OverflowError:
            return self.max_seconds
