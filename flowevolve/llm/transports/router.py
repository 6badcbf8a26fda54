"""Several endpoints that serve the same models, as one transport.

An endpoint is chosen by consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam, SODA 2018) over
rendezvous hashing (Thaler and Ravishankar, IEEE/ACM ToN 6(1), 1998). Requests with the same long first message rank the
endpoints in the same order, so that they find it in a prefix cache. Each goes to the first endpoint of its ranking
that, with the request, has at most ``1 + SLACK`` times the mean number of requests in flight, rounded up. If the first
message is short, endpoints are ranked by their requests in flight.

An endpoint that fails several times in a row is ejected and gets no requests. Once a health check is due, at growing
intervals, the next request asks the endpoint for its list of models; if it answers, it gets that single request on
trial, and if this is answered it is up again. A failed call is raised to the client, whose retry goes elsewhere, as an
endpoint whose last call failed is ranked last. While no endpoint is up, calls fail like those of a single server that
is down.

Each endpoint has rate limits of its own, learnt from its headers and refusals (429). An endpoint that may not be asked
yet is skipped while another may be, and a request that one endpoint refuses goes at once to the next one that may be
asked. The caller only sees a refusal when no such endpoint is left.

If one of our own servers restarts at another address, a new endpoint takes the place of the old one (`Router.move`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import blake2b
from math import ceil

import anyio

from flowevolve._util.errors import InputError
from flowevolve._util.tasks import Pulse, run_all
from flowevolve.core.events import Log, log_nothing
from flowevolve.core.model import (
    NO_MODEL_LIST,
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    OverloadedError,
    R,
    RefusedError,
    ServerError,
    Transport,
    UnreachableError,
    WrongAddressError,
    embedding_transport,
)
from flowevolve.core.server_event_kinds import EndpointEjected, EndpointReturned
from flowevolve.llm.scheduling.model_rates import LEAST_PAUSE
from flowevolve.llm.scheduling.rate_limits import is_refusal, log_refusal_storm
from flowevolve.llm.transports.endpoint import Endpoint, EndpointStats

SLACK = 0.25
"""How far above the mean number of requests in flight an endpoint may get, as a fraction."""
LONG_PREFIX = 256
"""From this many characters on, a first message is worth finding in a cache: about four of vLLM's 16-token blocks."""
EJECT_AFTER = 3
"""Failures in a row after which an endpoint is ejected."""
FIRST_CHECK_SECONDS = 1.0
"""The time from an ejection to the first health check."""
_RANKINGS = 1024


def make_router(
    urls: Sequence[str],
    make: Callable[[str], Transport],
    identity: str | None = None,
    log: Log = log_nothing,
    *,
    may_move: bool = False,
) -> Transport:
    """A `Router` over the transports that ``make`` creates for these base URLs.

    A single URL gets just its transport, unless its endpoint may move to another URL.

    Raises:
        InputError: if there is no URL, or one is given twice.
    """
    bare = [url.rstrip("/") for url in urls]
    twice = next((url for number, url in enumerate(bare) if url in bare[:number]), None)
    if twice is not None:
        raise InputError(f"base_urls: {twice} is there twice; name each endpoint once")
    if not urls:
        raise InputError("base_urls is empty; name at least one endpoint")
    if len(urls) == 1 and not may_move:
        return make(urls[0])
    return Router({url: make(url) for url in urls}, identity, log=log, make=make)


class Router:
    """A `flowevolve.core.model.Transport` over ``endpoints``: transports by base URL, which it closes.

    Endpoints that are ejected, that return, and that refuse many requests are written to ``log``.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Transport],
        identity: str | None = None,
        *,
        log: Log = log_nothing,
        make: Callable[[str], Transport] | None = None,
        first_check_seconds: float = FIRST_CHECK_SECONDS,
    ) -> None:
        """``make`` creates the transport for the new URL of an endpoint that moves; without it, none can move."""
        self._log = log
        self._make = make
        self._endpoints = [Endpoint(transport, EndpointStats(url)) for url, transport in endpoints.items()]
        self._left: list[Endpoint] = []
        """The old endpoints of those that have moved. Their open requests still finish, and their figures are kept."""
        self.identity = self.urls[0] if identity is None else identity
        """By default the first URL alone, so that cached replies stay valid when other endpoints come or go."""
        self._first_check_seconds = first_check_seconds
        self._changed = Pulse()
        self._ranking = lru_cache(_RANKINGS)(self._rank)

    @property
    def urls(self) -> tuple[str, ...]:
        """The endpoints' URLs. An endpoint that moves keeps its place among them."""
        return tuple(endpoint.stats.url for endpoint in self._endpoints)

    @property
    def base_url(self) -> str:
        return ", ".join(self.urls)

    def stats(self) -> list[EndpointStats]:
        """The figures up to now, in the order of the endpoints; then those of endpoints that have moved."""
        return [replace(endpoint.stats) for endpoint in (*self._endpoints, *self._left)]

    def move(self, url: str, to: str) -> None:
        """Replace the endpoint at ``url``, if there is one, by a new one at ``to``, which is taken to be up."""
        if url not in self.urls or self._make is None:
            return
        index = self.urls.index(url)
        self._left.append(self._endpoints[index])
        self._endpoints[index] = Endpoint(self._make(to), EndpointStats(to))
        self._ranking.cache_clear()
        self._changed.fire()

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Make one call, as `flowevolve.core.model.Transport.chat` says.

        A second request for one that is in flight already (a hedge) goes to another endpoint, if there is one.
        ``timeout`` applies to each endpoint that is asked. Replies have no headers, as these describe one endpoint.
        """
        return await self._carry(request, lambda transport: transport.chat(request, timeout=timeout))

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        """Make one call, as `flowevolve.core.model.EmbeddingTransport.embed` says."""
        return await self._carry(
            request, lambda transport: embedding_transport(transport).embed(request, timeout=timeout)
        )

    async def models(self) -> tuple[str, ...]:
        """The models that every endpoint serves, as `flowevolve.core.model.Transport.models` says.

        Endpoints that can't be reached are ejected; the call fails if none is left. It also fails if some have a list
        of models and others have none: servers of the same models are alike, so the address of these must be wrong.
        """
        answers = await run_all([partial(self._models_of, endpoint) for endpoint in self._endpoints])
        served = [answer for answer in answers if isinstance(answer, tuple)]
        missing = next((answer for answer in answers if isinstance(answer, RefusedError)), None)
        if missing is not None and served:
            raise WrongAddressError(f"{missing}; the other endpoints list their models, so that address must be wrong")
        if missing is not None:
            raise missing
        if not served:
            raise UnreachableError(self._all_down())
        return tuple(model for model in served[0] if all(model in others for others in served))

    async def aclose(self) -> None:
        """Close all connections."""
        await run_all([endpoint.transport.aclose for endpoint in (*self._endpoints, *self._left)])

    async def _carry(self, request: ChatRequest | EmbedRequest, send: Callable[[Transport], Awaitable[R]]) -> R:
        endpoint = await self._choose(request)
        refused: list[Endpoint] = []
        while True:
            try:
                return await self._send(endpoint, request, send)
            except OverloadedError as error:
                if not is_refusal(error):
                    raise
                refused.append(endpoint)
                others = [each for each in self._up() if each not in refused and each.wait_seconds(request) <= 0]
                if not others:
                    raise self._refused_by_all(request, error) from error
            endpoint = self._pick(request, others)

    async def _send(
        self, endpoint: Endpoint, request: ChatRequest | EmbedRequest, send: Callable[[Transport], Awaitable[R]]
    ) -> R:
        on_trial = endpoint.state == "trial"
        sent = endpoint.enter(request)
        try:
            reply = await send(endpoint.transport)
        except LLMError as error:
            if is_refusal(error) and endpoint.refused(sent, request.model, error):
                log_refusal_storm(self._log, endpoint.stats.url, request.model, endpoint.rates[request.model])
            self._note_outcome(endpoint, error if _is_failure(error) else None, on_trial=on_trial)
            if isinstance(error, RefusedError):
                raise _named(endpoint, error) from error
            raise
        except BaseException:
            if on_trial:
                self._schedule_check(endpoint, 0.0)  # cancelled, so nothing is known yet: the next request is the trial
            raise
        finally:
            endpoint.leave(request)
        self._note_outcome(endpoint, None, on_trial=on_trial)
        return endpoint.answered(sent, request.model, reply)

    def _refused_by_all(self, request: ChatRequest | EmbedRequest, error: LLMError) -> OverloadedError:
        """The error for a request that no endpoint accepts now, without the headers of a single endpoint."""
        wait = error.retry_after
        if wait is not None:
            soonest = min((each.wait_seconds(request) for each in self._up()), default=0.0)
            wait = min(wait, max(LEAST_PAUSE, soonest))
        return OverloadedError(str(error), status=error.status, retry_after=wait)

    def _up(self) -> list[Endpoint]:
        return [endpoint for endpoint in self._endpoints if endpoint.state == "up"]

    async def _choose(self, request: ChatRequest | EmbedRequest) -> Endpoint:
        while True:
            now = anyio.current_time()
            due = next((each for each in self._endpoints if each.state == "ejected" and each.check_at <= now), None)
            if due is not None:
                if await self._passes_check(due):
                    return due
                continue
            up = self._up()
            if up:
                return self._pick(request, _soonest(request, up))
            if not any(endpoint.state == "trial" for endpoint in self._endpoints):
                raise UnreachableError(self._all_down())
            await self._changed.wait()

    def _pick(self, request: ChatRequest | EmbedRequest, among: Sequence[Endpoint]) -> Endpoint:
        prefix = request.messages[0].content if isinstance(request, ChatRequest) and request.messages else ""
        if len(prefix) >= LONG_PREFIX:
            ranked = [self._endpoints[index] for index in self._ranking(prefix) if self._endpoints[index] in among]
        else:
            ranked = sorted(among, key=lambda each: (each.stats.in_flight, each.stats.requests))
        ranked.sort(key=lambda each: (each.has(request), each.failures_in_a_row > 0))
        # Not all can be at the bound: it is above the mean.
        bound = ceil((1 + SLACK) * (sum(each.stats.in_flight for each in among) + 1) / len(among))
        return next(each for each in ranked if each.stats.in_flight < bound)

    def _rank(self, prefix: str) -> tuple[int, ...]:
        """The endpoints' indices, best first. Adding or removing one does not change the order of the others."""
        digest = blake2b(prefix.encode("utf-8", "surrogatepass")).digest()
        weights = [blake2b(digest + url.encode("utf-8", "surrogatepass")).digest() for url in self.urls]
        return tuple(sorted(range(len(weights)), key=weights.__getitem__))

    async def _passes_check(self, endpoint: Endpoint) -> bool:
        """Check an ejected endpoint's health. If it answers, it is on trial with the current request."""
        endpoint.state = "trial"
        try:
            await endpoint.check_health()
        except LLMError as error:
            endpoint.last_error = str(error)
            self._schedule_check(endpoint, endpoint.next_wait())
            return False
        except BaseException:
            self._schedule_check(endpoint, 0.0)
            raise
        return True

    def _note_outcome(self, endpoint: Endpoint, failure: LLMError | None, *, on_trial: bool) -> None:
        """Note the end of a call: with a failure of the endpoint, or without (also if the request was at fault)."""
        if failure is None:
            endpoint.failures_in_a_row = 0
            if on_trial:
                self._return(endpoint)
            return
        endpoint.failed(failure)
        if on_trial:
            self._schedule_check(endpoint, endpoint.next_wait())
        elif endpoint.state == "up" and endpoint.failures_in_a_row >= EJECT_AFTER:
            self._eject(endpoint)

    def _eject(self, endpoint: Endpoint) -> None:
        endpoint.stats.ejections += 1
        endpoint.stats.ejected = True
        endpoint.ejected_at = anyio.current_time()
        endpoint.wait = self._first_check_seconds
        self._schedule_check(endpoint, endpoint.wait)
        self._log(EndpointEjected(endpoint.stats.url, endpoint.last_error, endpoint.stats.failures))

    def _schedule_check(self, endpoint: Endpoint, seconds: float) -> None:
        endpoint.state = "ejected"
        endpoint.check_at = anyio.current_time() + seconds
        self._changed.fire()

    def _return(self, endpoint: Endpoint) -> None:
        endpoint.state = "up"
        endpoint.stats.ejected = False
        self._changed.fire()
        seconds = round(anyio.current_time() - endpoint.ejected_at, 3)
        self._log(EndpointReturned(endpoint.stats.url, seconds))

    async def _models_of(self, endpoint: Endpoint) -> tuple[str, ...] | RefusedError | None:
        """The models that an endpoint lists, its refusal if it has no list, or None if it gives no useful answer."""
        try:
            return await endpoint.models()
        except RefusedError as error:
            named = _named(endpoint, error)
            if error.status in NO_MODEL_LIST:
                return named
            raise named from error
        except LLMError as error:
            endpoint.failed(error)
            if endpoint.state == "up":
                self._eject(endpoint)
            return None

    def _all_down(self) -> str:
        errors = "; ".join(f"{endpoint.stats.url}: {endpoint.last_error}" for endpoint in self._endpoints)
        return f"no endpoint is up ({errors})"


def _named(endpoint: Endpoint, error: RefusedError) -> RefusedError:
    """The error with the address of the endpoint that it came from."""
    return type(error)(f"{endpoint.stats.url}: {error}", status=error.status)


def _is_failure(error: LLMError) -> bool:
    """Whether the error is a fault of the endpoint, and not of the request."""
    return isinstance(error, UnreachableError | ServerError) or (error.status or 0) >= 500


def _soonest(request: ChatRequest | EmbedRequest, up: Sequence[Endpoint]) -> Sequence[Endpoint]:
    """The endpoints whose limits allow the request now; if there is none, those that allow it soonest."""
    waits = [each.wait_seconds(request) for each in up]
    least = min(waits)
    return [each for each, wait in zip(up, waits, strict=True) if wait <= least]
