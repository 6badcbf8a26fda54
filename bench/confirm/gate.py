"""The gate that every call goes through: it counts, keeps to the cap, and gives all calls the same settings."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

from aiohttp import web

from bench.confirm.meter import CapReachedError, Meter, longest
from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError
from flowevolve._util.tasks import Pulse
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.model import ChatReply, ChatRequest, HasBaseURL, LLMError, Message, Transport, UnreachableError
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.server_side import (
    UNREADABLE,
    answer_body,
    error_answer,
    models_answer,
    read_request,
    unreadable_answer,
)

ROLE = "task"


@dataclass(frozen=True, slots=True)
class Sampling:
    """The model and how it is asked, the same for all calls. An answer has at most ``max_tokens``."""

    model: str
    temperature: float | None
    max_tokens: int
    concurrency: int


class MeteredTransport:
    """A transport that has the meter reserve and settle each attempt, for one work."""

    def __init__(self, transport: Transport, meter: Meter, work: str) -> None:
        self.base_url = transport.base_url if isinstance(transport, HasBaseURL) else "the endpoint"
        self._transport = transport
        self._meter = meter
        self._work = work

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Make one call, as `flowevolve.core.model.Transport.chat` says. A call that got no answer, or whose answer
        does not say what it cost, is charged in full.

        Raises:
            CapReachedError: if the cap has no room for it.
        """
        assert request.max_tokens is not None, "the role has a limit"
        most = longest(request.messages, request.max_tokens)
        call = await self._meter.room(self._work, most)
        usage = most
        try:
            reply = await self._transport.chat(request, timeout=timeout)
            usage = reply.usage if reply.usage.prompt_tokens else most
        except LLMError as error:
            usage = most if isinstance(error, UnreachableError) else error.usage
            raise
        finally:
            self._meter.settle(call, usage)
        return reply

    async def models(self) -> tuple[str, ...]:
        """The model names that the endpoint serves."""
        return await self._transport.models()

    async def aclose(self) -> None:
        """Do nothing: whoever opened the endpoint's own transport closes it."""


class Gate:
    """Calls the endpoint for works, which are known by name. It retries failed attempts, for all works alike."""

    def __init__(self, endpoint: Transport, meter: Meter, sampling: Sampling) -> None:
        self.meter = meter
        self.sampling = sampling
        self.capped = False
        """Whether a call was refused because the cap had no room for it."""
        self._endpoint = endpoint
        self._scheduler = Scheduler(sampling.concurrency)
        self._clients: dict[str, LLMClient] = {}
        self._numbers = count()
        self._open = 0
        self._changed = Pulse()

    async def check(self) -> None:
        """Raises: BackendUnreachableError, BackendRefusedError if the endpoint can't be reached or lacks the model."""
        await self._client("check").check()

    async def ask(self, work: str, messages: Sequence[Message], max_tokens: int | None = None) -> ChatReply:
        """Make one call for a work.

        Raises:
            CapReachedError: if the cap has no room for it.
            BackendUnreachableError, BackendRefusedError, LLMError: as `LLMClient.chat`.
        """
        number = next(self._numbers)
        scope = CallScope("gate", str(number), None, priority=0, index=0)
        most = min(max_tokens or self.sampling.max_tokens, self.sampling.max_tokens)
        self._open += 1
        try:
            return await self._client(work).chat(ROLE, messages, scope=scope, max_tokens=most)
        except CapReachedError:
            self.capped = True
            raise
        finally:
            self._open -= 1
            self._changed.fire()

    async def idle(self) -> None:
        """Wait until no call is open: a method that has ended may have left some."""
        while self._open:
            await self._changed.wait()

    def _client(self, work: str) -> LLMClient:
        if work not in self._clients:
            metered = MeteredTransport(self._endpoint, self.meter, work)
            sampling = self.sampling
            model = Model(metered, sampling.model, temperature=sampling.temperature, max_tokens=sampling.max_tokens,
                          must_be_listed=False, must_have_list=False)  # fmt: skip
            self._clients[work] = LLMClient({ROLE: model}, self._scheduler, RetryPolicy(), 0, _note_nothing)
        return self._clients[work]


def _note_nothing(record: CallRecord) -> None:
    """The meter has noted the call already."""


@asynccontextmanager
async def serving(gate: Gate) -> AsyncGenerator[str]:
    """Serve the gate on this machine; yields its address, below which each work has a base URL (`url_of`)."""
    handlers = _Handlers(gate)
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/{work:.+}/v1/chat/completions", handlers.chat)
    app.router.add_get("/{work:.+}/v1/models", handlers.models)
    # A call whose client has gone away still runs to its end: it is paid for, and only then is its cost known.
    runner = web.AppRunner(app, handler_cancellation=False, access_log=None, shutdown_timeout=5.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port, *_ = runner.addresses[0]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def url_of(address: str, work: str) -> str:
    return f"{address}/{work}/v1"


class _Handlers:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._served = count()

    async def chat(self, request: web.Request) -> web.Response:
        try:
            asked = read_request(json.loads(await request.read()))
        except UNREADABLE as error:
            return unreadable_answer(error)
        try:
            reply = await self._gate.ask(request.match_info["work"], asked.messages, asked.max_tokens)
        except CapReachedError as error:
            return web.json_response({"error": {"message": str(error), "type": "cap"}}, status=402)
        except (BackendUnreachableError, BackendRefusedError) as error:
            return web.json_response({"error": {"message": str(error), "type": "endpoint"}}, status=403)
        except LLMError as error:
            return error_answer(error)
        return web.Response(body=answer_body(reply, next(self._served)), content_type="application/json")

    async def models(self, request: web.Request) -> web.Response:
        return models_answer([self._gate.sampling.model], "confirm")
