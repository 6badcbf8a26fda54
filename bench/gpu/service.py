"""A simulated server that takes as long for its answers as a real server.

A model with random weights writes as fast as a trained one, but says nothing that could be scored or accepted. So the
simulated world decides, from the request alone, what the answer is and how long it is, and a real server writes as many
tokens for a prompt of the same length before the answer is sent. Times are the real server's, answers the simulated
world's.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import aiohttp
import anyio
from aiohttp import web
from aiohttp.typedefs import Handler

from flowevolve.core.model import CHARS_PER_TOKEN, OverloadedError, ServerError, UnreachableError
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import APIProfile, OutputLength
from flowevolve.sim.server import serve
from flowevolve.sim.service_model import OnBegin, Served, ServiceStats
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

Dialect = Literal["vllm", "transformers"]
FIRST_TOKEN = 16
"""The lowest token id that is used: lower ones may be special."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A server of completions at ``url``, which ends in ``/v1``. ``context`` is in tokens; token ids are below
    ``vocabulary``.
    """

    url: str
    model: str
    dialect: Dialect
    context: int
    vocabulary: int


class RealService:
    """A `flowevolve.sim.service_model.Service`: takes the time that an engine needs for as many tokens."""

    def __init__(self, engine: Engine, session: aiohttp.ClientSession) -> None:
        self.stats = ServiceStats()
        self._engine = engine
        self._session = session

    async def serve(
        self, prompt: str, output_tokens: int, priority: int, rng: random.Random, on_begin: OnBegin | None = None
    ) -> Served:
        """Serve a request. If it does not fit the model's context, the output is cut first, then the end of the prompt.

        Raises:
            OverloadedError, ServerError, UnreachableError: as the engine answers.
        """
        arrived = anyio.current_time()
        ids = token_ids(prompt, self._engine.vocabulary)[: self._engine.context - 1]
        tokens = min(output_tokens, self._engine.context - len(ids))
        self.stats.running += 1
        try:
            cached = await self._complete(self._body(prompt, ids, tokens, priority))
        finally:
            self.stats.running -= 1
        self.stats.finished += 1
        self.stats.prompt_tokens += len(ids)
        self.stats.cached_tokens += cached
        self.stats.output_tokens += tokens
        if on_begin is not None:
            on_begin(0.0)
        return Served(0.0, anyio.current_time() - arrived, cached)

    def _body(self, prompt: str, ids: list[int], tokens: int, priority: int) -> dict[str, object]:
        body: dict[str, object] = {"model": self._engine.model, "max_tokens": tokens, "temperature": 1.0}
        if self._engine.dialect == "transformers":
            return {**body, "prompt": prompt}  # it takes neither ids nor priorities, and random weights hardly ever end
        return {**body, "prompt": ids, "priority": priority, "ignore_eos": True}

    async def _complete(self, body: dict[str, object]) -> int:
        """Have the engine write; returns how many tokens of the prompt it had cached, or 0 if it does not say."""
        try:
            async with self._session.post(self._engine.url + "/completions", json=body) as response:
                if response.status in (429, 503):
                    raise OverloadedError("the engine is full", status=response.status)
                if response.status != 200:
                    raise ServerError(f"{response.status}: {(await response.text())[:300]}")
                usage = (await response.json()).get("usage") or {}
        except aiohttp.ClientError as error:
            raise UnreachableError(str(error) or type(error).__name__) from error
        if usage.get("completion_tokens") not in (None, body["max_tokens"]):
            raise ServerError(f"asked for {body['max_tokens']} tokens, got {usage['completion_tokens']}")
        return int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)


def token_ids(text: str, vocabulary: int) -> list[int]:
    """One token id for every `CHARS_PER_TOKEN` characters. Equal texts, and equal beginnings, get equal ids."""
    pieces = (text[start : start + CHARS_PER_TOKEN] for start in range(0, len(text), CHARS_PER_TOKEN))
    return [FIRST_TOKEN + _number(piece) % (vocabulary - FIRST_TOKEN) for piece in pieces] or [FIRST_TOKEN]


def _number(piece: str) -> int:
    return int.from_bytes(blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big")


class _OwnMetrics:
    """Middleware that answers requests for metrics with those of the engine."""

    def __init__(self, engine: Engine, session: aiohttp.ClientSession) -> None:
        self._url = engine.url.removesuffix("/v1") + "/metrics"
        self._session = session

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path != "/metrics":
            return await handler(request)
        async with self._session.get(self._url) as response:
            return web.Response(status=response.status, text=await response.text())


@asynccontextmanager
async def worded(engine: Engine, output: OutputLength, *, preset: str = "normal") -> AsyncGenerator[str]:
    """Serve world ``rules`` with these output lengths at the engine's speed; yields the base URL."""
    unlimited = APIProfile(output, 0.0, 0.0, 0.0, requests_per_minute=float("inf"), tokens_per_minute=float("inf"))
    backend = SimBackend(RulesWorld(PRESETS[preset]), unlimited, model=engine.model)
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=4.0)  # uvicorn closes idle connections after 5 s
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        backend.service = RealService(engine, session)
        async with serve(backend, middlewares=[web.middleware(_OwnMetrics(engine, session))]) as url:
            yield url
