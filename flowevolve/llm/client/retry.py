"""When a failed LLM call is tried again.

A pure policy: its inputs are the error and how long the backend has been silent, and it reads no clock. When the
backend is down or overloaded, calls are retried until the patience is used up; an error of one request is retried a few
times; a request that the backend understood and rejected is never repeated.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from flowevolve._util.errors import InputError
from flowevolve.core.model import LLMError, OverloadedError, ServerError, UnreachableError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter.

    The first wait is ``base_seconds``, each later one ``multiplier`` times as long, up to ``max_seconds``. A wait that
    the server asks for replaces it. A random part is added, of up to ``jitter`` times the backoff or, if that is
    longer, half the wait that the server asked for. So calls that failed together come back spread out, the more so the
    longer the failure lasts.

    Raises:
        InputError: if a value is out of range.
    """

    base_seconds: float = 1.0
    max_seconds: float = 30.0
    multiplier: float = 2.0
    jitter: float = 0.5
    server_error_attempts: int = 4
    """The most attempts at a request that fails although the backend works."""
    patience_seconds: float = 300.0
    """How long a backend may be silent before it counts as gone."""

    def __post_init__(self) -> None:
        attempts = self.server_error_attempts
        requirements = {
            f"base_seconds is {self.base_seconds}, but has to be above 0": self.base_seconds > 0,
            f"max_seconds is {self.max_seconds}, but has to be at least base_seconds, which is {self.base_seconds}": (
                self.max_seconds >= self.base_seconds
            ),
            f"multiplier is {self.multiplier}, but has to be at least 1": self.multiplier >= 1,
            f"jitter is {self.jitter}, but has to be from 0 to 1": 0 <= self.jitter <= 1,
            f"server_error_attempts is {attempts}, but has to be at least 1": attempts >= 1,
            f"patience_seconds is {self.patience_seconds}, but has to be at least 0": self.patience_seconds >= 0,
        }
        for message, is_met in requirements.items():
            if not is_met:
                raise InputError(f"RetryPolicy: {message}")

    def decide(
        self,
        error: LLMError,
        attempt: int,
        silent_seconds: float,
        rng: random.Random,
        *,
        lost_answers: int = 0,
        answers_nobody: bool = False,
    ) -> float | None:
        """Seconds to wait before the next attempt, or None to give up.

        ``attempt`` counts from 1. ``silent_seconds`` is how long the backend has been silent, as
        `flowevolve.llm.client.pending_call.PendingCall.silence` counts it. If the backend answered another call during
        this attempt, ``lost_answers`` is how many attempts at this call got no answer although the backend was there,
        else 0. A missing answer is then a problem of this request, such as a text too long for its timeout, and the
        number of such attempts is limited; otherwise it would be repeated for ever, as the answers to other calls keep
        the backend from counting as silent.
        ``answers_nobody`` says that the backend is down, so that a server error is not the fault of this request and is
        retried until the patience is used up.
        """
        match error:
            case OverloadedError():
                go_on = not self.exhausted(silent_seconds)
            case UnreachableError():
                go_on = not self.exhausted(silent_seconds) and not self._tried(lost_answers)
            case ServerError() if answers_nobody:
                go_on = not self.exhausted(silent_seconds)
            case ServerError():
                go_on = not self._tried(attempt)
            case _:
                go_on = False
        return self._wait(error.retry_after, attempt, rng) if go_on else None

    def exhausted(self, silent_seconds: float) -> bool:
        """Whether a backend that has been silent for this long counts as gone."""
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
