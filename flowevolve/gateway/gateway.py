"""Passes on the requests of several runs under one concurrency limit, with common rate limits and response cache."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from flowevolve._util.clock import now
from flowevolve.core.events import Log, log_nothing
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    OutOfCreditError,
    OverloadedError,
    R,
    RefusedError,
    Transport,
    embedding_transport,
)
from flowevolve.gateway.shares import FairShares, RunAccount
from flowevolve.llm.client.cache import reply_key
from flowevolve.llm.client.pending_call import Backend
from flowevolve.llm.client.reachability import without_full_stop
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.rate_limits import Limits, is_refusal
from flowevolve.llm.scheduling.request_queue import QueuedRequest
from flowevolve.llm.scheduling.scheduler import Scheduler, SchedulerStats
from flowevolve.llm.usage import embedding_with_estimated_usage, with_estimated_usage

if TYPE_CHECKING:
    from flowevolve.llm.client.cache import ResponseCache
    from flowevolve.llm.transports.sender import Sender

MOST_WAITING = 10_000
"""The most requests of one run that may wait; more are turned away."""
BUSY = 503
"""The status of the answer to a request that is turned away."""
RETRY_SECONDS = 5.0
"""After how many seconds such a request may be sent again."""
_KEY_REFUSED = (401, 403)
"""The statuses with which a server refuses a key, or what the key does not give access to."""


class Gateway:
    """Passes the requests of several runs on to ``transport``, at most ``concurrency`` at a time. For one event loop.

    `FairShares` decides whose request is next; the requests of one run go in the order in which they came. The priority
    of a request is not passed on, as it would put the request before those of other runs. If the server refuses a
    request because it gets too many, the request waits here and is sent again, unseen by its run. All other failures
    are returned to the run, which decides how often to try again. ``cache`` answers requests that were answered before,
    for any run; ``requests_per_minute`` and ``tokens_per_minute`` apply to each model, for all runs together.
    """

    def __init__(
        self,
        transport: Transport,
        concurrency: int,
        *,
        cache: ResponseCache | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        most_waiting: int = MOST_WAITING,
        log: Log = log_nothing,
    ) -> None:
        self._backend = Backend(transport)
        self._order = FairShares()
        self._scheduler = Scheduler(concurrency, self._order)
        self._retry = RetryPolicy()
        self._limits = Limits(
            self._scheduler,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            longest_pause=self._retry.patience_seconds,
            log=log,
        )
        self._cache = cache
        self._most_waiting = most_waiting
        self._random = random.Random(0)  # only spreads out repeated requests

    def accounts(self) -> list[RunAccount]:
        """The runs, with what the server has done for each."""
        return self._order.accounts()

    def stats(self) -> SchedulerStats:
        """The figures of all runs together."""
        return self._scheduler.stats()

    async def chat(self, sender: Sender, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Make one call for a run. ``timeout`` limits the server's work on it, in seconds; waiting here is unlimited.

        Raises:
            LLMError: as `flowevolve.core.model.Transport.chat`; also an `OverloadedError` if too many requests of the
                run wait.
            InputError: if the response cache is damaged.
        """
        passed_on = replace(request, priority=None)

        async def send() -> ChatReply:
            with _of_own_key():
                reply = await self._backend.transport.chat(passed_on, timeout=timeout)
            return with_estimated_usage(passed_on, reply)

        key = None if self._cache is None else reply_key(self._backend.identity, request)
        if self._cache is None or key is None:
            return await self._share(sender, passed_on, send)
        async with self._cache.single_flight(key) as cached:
            if cached is not None:
                return cached
            reply = await self._share(sender, passed_on, send)
            self._cache.keep(key, reply)
            return reply

    async def embed(self, sender: Sender, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        """Turn texts into vectors for a run, as `chat`. Embeddings are not cached."""

        async def send() -> EmbedReply:
            transport = embedding_transport(self._backend.transport)
            with _of_own_key():
                reply = await transport.embed(request, timeout=timeout)
            return embedding_with_estimated_usage(request, reply)

        return await self._share(sender, request, send)

    async def models(self) -> tuple[str, ...]:
        """The models that the server lists, as `flowevolve.core.model.Transport.models`."""
        with _of_own_key():
            return await self._backend.transport.models()

    async def _share(self, sender: Sender, request: ChatRequest | EmbedRequest, send: Callable[[], Awaitable[R]]) -> R:
        """Send a request when it is its run's turn, and again each time the server refuses it as one too many."""
        with self._order.opened(sender) as account:
            if account.waiting > self._most_waiting:
                said = f"{self._most_waiting} requests of this run wait already"
                raise OverloadedError(said, status=BUSY, retry_after=RETRY_SECONDS)
            attempt, refused_at = 0, None
            while True:
                attempt += 1
                try:
                    return await self._attempt(account, request, send)
                except OverloadedError as error:
                    if not is_refusal(error):
                        raise
                    refused_at = now() if refused_at is None else refused_at
                    silent_seconds = now() - max(refused_at, self._backend.answered)
                    wait = self._retry.decide(error, attempt, silent_seconds, self._random)
                    if wait is None:
                        raise
                await anyio.sleep(wait)

    async def _attempt(
        self, account: RunAccount, request: ChatRequest | EmbedRequest, send: Callable[[], Awaitable[R]]
    ) -> R:
        ask = QueuedRequest(group=account.sender.run)
        async with self._limits.permit(ask, self._backend.where, request) as permit:
            with self._order.at_work(account):
                reply = permit.answered(await send())
            self._backend.answered = now()
            self._order.answered(account, reply.usage)
            return reply


@contextmanager
def _of_own_key() -> Iterator[None]:
    """If the server refuses the key, say that it is the gateway's: the run's own key is not at fault.

    Raises:
        RefusedError: with status 403, as a 401 would say that the run's key is wrong.
    """
    try:
        yield
    except RefusedError as error:
        if error.status not in _KEY_REFUSED or isinstance(error, OutOfCreditError):
            raise
        raise RefusedError(
            f"the server behind the gateway refuses the gateway's key: {without_full_stop(error)}. Correct the key in "
            "the variable that --api-key-env names, and start flowevolve gateway again",
            status=403,
        ) from error
