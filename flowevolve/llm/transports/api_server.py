"""An OpenAI-compatible API over HTTP, which all our servers share; an `API` object gives the answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Middleware

from flowevolve._util.web_server import listening
from flowevolve.core.model import ChatRequest, EmbedReply, EmbedRequest, LLMError
from flowevolve.llm.transports.server_side import (
    UNREADABLE,
    embeddings_answer,
    error_answer,
    models_answer,
    read_embedding,
    read_request,
    unreadable_answer,
    wants_base64,
    wants_usage,
)

MOST_BYTES = 64 * 2**20
"""The largest request body that is accepted."""


class API(Protocol):
    """Answers the requests. If a method raises an `LLMError`, the client gets the HTTP error that stands for it."""

    owner: str
    """The owner that the list of models gives for each."""

    async def chat(self, request: web.Request, asked: ChatRequest, *, usage: bool) -> web.StreamResponse:
        """Answer the request ``asked``. With ``usage``, a stream must end with the token counts."""
        ...

    async def embed(self, request: web.Request, asked: EmbedRequest) -> EmbedReply:
        """Turn texts into vectors."""
        ...

    async def models(self) -> Sequence[str]:
        """The names of the models."""
        ...

    async def metrics(self) -> str:
        """Figures, in Prometheus' form."""
        ...


@asynccontextmanager
async def serve_api(
    api: API,
    host: str,
    port: int,
    *,
    middlewares: Sequence[Middleware],
    more_routes: Sequence[web.RouteDef] = (),
) -> AsyncGenerator[str]:
    """Serve on this address behind these middlewares, and yield the API's base URL. Port 0 takes any free port.

    When a client disconnects, the method of ``api`` that answers it is cancelled.

    Raises:
        OSError: if the address can't be listened on.
    """
    app = web.Application(client_max_size=MOST_BYTES, middlewares=middlewares)
    handlers = _Handlers(api)
    app.router.add_post("/v1/chat/completions", handlers.chat)
    app.router.add_post("/v1/embeddings", handlers.embeddings)
    app.router.add_get("/v1/models", handlers.models)
    app.router.add_get("/health", handlers.health)
    app.router.add_get("/metrics", handlers.metrics)
    app.router.add_routes(more_routes)
    async with listening(app, host, port) as address:
        yield f"{address}/v1"


class _Handlers:
    def __init__(self, api: API) -> None:
        self._api = api

    async def chat(self, request: web.Request) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
            asked = read_request(body)
        except UNREADABLE as error:
            return unreadable_answer(error)
        try:
            return await self._api.chat(request, asked, usage=wants_usage(body))
        except LLMError as error:
            return error_answer(error)

    async def embeddings(self, request: web.Request) -> web.Response:
        try:
            body = json.loads(await request.read())
            asked = read_embedding(body)
        except UNREADABLE as error:
            return unreadable_answer(error)
        try:
            reply = await self._api.embed(request, asked)
        except LLMError as error:
            return error_answer(error)
        return embeddings_answer(reply, base64=wants_base64(body))

    async def models(self, request: web.Request) -> web.Response:
        try:
            return models_answer(await self._api.models(), self._api.owner)
        except LLMError as error:
            return error_answer(error)

    async def health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def metrics(self, request: web.Request) -> web.Response:
        return web.Response(text=await self._api.metrics(), content_type="text/plain")
