"""One endpoint of a router: its figures, whether it is up, and its rate limits for each model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

import anyio

from flowevolve._util import clock
from flowevolve.core.model import (
    NO_MODEL_LIST,
    ChatRequest,
    EmbedRequest,
    LLMError,
    R,
    RefusedError,
    Transport,
    UnreachableError,
)
from flowevolve.llm.scheduling.model_rates import ModelRates, SentRequest
from flowevolve.llm.scheduling.rate_headers import allowances
from flowevolve.llm.scheduling.rate_limits import estimated_tokens

LONGEST_CHECK_SECONDS = 10.0
"""The longest wait between two health checks; each wait is twice the one before."""
CHECK_TIMEOUT_SECONDS = 10.0


@dataclass(slots=True)
class EndpointStats:
    """Figures of an endpoint.

    ``failures`` counts calls that did not reach it or were answered with a 5xx status, ``refusals`` those answered with
    429.
    """

    url: str
    requests: int = 0
    failures: int = 0
    refusals: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    ejections: int = 0
    ejected: bool = False


@dataclass(slots=True, eq=False)
class Endpoint:
    """One endpoint and what is known of its state."""

    transport: Transport
    stats: EndpointStats
    state: Literal["up", "ejected", "trial"] = "up"
    """``trial``: a health check is in progress, or the single request after it."""
    failures_in_a_row: int = 0
    """Failures since its last answer."""
    last_error: str = ""
    """The message of the last failure."""
    ejected_at: float = 0.0
    wait: float = 0.0
    """The seconds from the last health check to the next one."""
    check_at: float = 0.0
    open: Counter[int] = field(default_factory=Counter)
    """Requests in flight, counted by ``id``, which is unique while they are in flight."""
    rates: dict[str, ModelRates] = field(default_factory=dict)
    """This endpoint's own rate limits, by model."""
    _has_listed: bool = False

    async def models(self) -> tuple[str, ...]:
        """As `Transport.models`, within `CHECK_TIMEOUT_SECONDS`."""
        try:
            with anyio.fail_after(CHECK_TIMEOUT_SECONDS):
                listed = await self.transport.models()
                self._has_listed = True
                return listed
        except TimeoutError:
            raise UnreachableError(f"no list of models within {CHECK_TIMEOUT_SECONDS:g} s") from None

    async def check_health(self) -> None:
        """Check that it answers: with its models or, if it has never listed any, with the status for a missing list.

        Raises:
            LLMError: if it gives no such answer.
        """
        try:
            await self.models()
        except RefusedError as error:
            if self._has_listed or error.status not in NO_MODEL_LIST:
                raise

    def has(self, request: ChatRequest | EmbedRequest) -> bool:
        """Whether this very request object is in flight here."""
        return id(request) in self.open

    def wait_seconds(self, request: ChatRequest | EmbedRequest) -> float:
        """The seconds until its rate limits allow the request; 0: now."""
        rates = self.rates.get(request.model)
        if rates is None or rates.free:
            return 0.0
        return rates.wait(clock.now(), _tokens(rates, request))

    def enter(self, request: ChatRequest | EmbedRequest) -> SentRequest:
        self.open[id(request)] += 1
        self.stats.requests += 1
        self.stats.in_flight += 1
        self.stats.peak_in_flight = max(self.stats.peak_in_flight, self.stats.in_flight)
        rates = self.rates.get(request.model)
        if rates is None:
            rates = self.rates[request.model] = ModelRates()
        return rates.take(clock.now(), _tokens(rates, request))

    def leave(self, request: ChatRequest | EmbedRequest) -> None:
        self.stats.in_flight -= 1
        self.open[id(request)] -= 1
        if not self.open[id(request)]:
            del self.open[id(request)]

    def answered(self, sent: SentRequest, model: str, reply: R) -> R:
        """Learn from an answer; returns it without its headers, which describe this endpoint alone."""
        rates, now = self.rates[model], clock.now()
        rates.answered(sent, now, reply.usage.total_tokens)
        if reply.headers is None:
            return reply
        rates.note_headers(sent, now, allowances(reply.headers))
        return replace(reply, headers=None)

    def refused(self, sent: SentRequest, model: str, error: LLMError) -> bool:
        """Learn from a refusal; returns whether it begins a storm of refusals."""
        self.stats.refusals += 1
        rates, now = self.rates[model], clock.now()
        if error.headers is not None:
            rates.note_headers(sent, now, allowances(error.headers))
        return rates.refused(sent, now, error.retry_after)

    def failed(self, error: LLMError) -> None:
        self.failures_in_a_row += 1
        self.stats.failures += 1
        self.last_error = str(error)

    def next_wait(self) -> float:
        """The seconds until the next health check, after this one or the trial that followed it has failed."""
        self.wait = min(LONGEST_CHECK_SECONDS, 2 * self.wait)
        return self.wait


def _tokens(rates: ModelRates, request: ChatRequest | EmbedRequest) -> float:
    return estimated_tokens(request) if rates.counts_tokens else 0.0
