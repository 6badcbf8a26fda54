"""The simulated server over HTTP: an OpenAI-compatible API, with vLLM's error bodies and metric names."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Middleware

from flowevolve.llm.types import (
    ChatRequest,
    EmbedRequest,
    LLMError,
    Message,
    OverloadedError,
    RefusedError,
    ServerError,
    UnreachableError,
)
from flowevolve.sim.backend import SimBackend

TIMEOUT_SECONDS = 3600.0
_ROLES = ("system", "user", "assistant")


@asynccontextmanager
async def serve(
    backend: SimBackend, host: str = "127.0.0.1", port: int = 0, middlewares: Sequence[Middleware] = ()
) -> AsyncGenerator[str]:
    """Serve on this address (port 0: any free one), behind these middlewares, and yield the API's base URL.

    A client that goes away cancels its request and frees its place in the batch.

    Raises:
        OSError: if the address can't be listened on.
    """
    app = web.Application(client_max_size=64 * 2**20, middlewares=middlewares)
    handlers = _Handlers(backend)
    app.router.add_post("/v1/chat/completions", handlers.chat)
    app.router.add_post("/v1/embeddings", handlers.embeddings)
    app.router.add_get("/v1/models", handlers.models)
    app.router.add_get("/health", handlers.health)
    app.router.add_get("/metrics", handlers.metrics)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        bound = cast("tuple[str, int]", runner.addresses[0])
        yield f"http://{bound[0]}:{bound[1]}/v1"
    finally:
        await runner.cleanup()


class _Handlers:
    def __init__(self, backend: SimBackend) -> None:
        self._backend = backend
        self._served = 0

    async def chat(self, request: web.Request) -> web.Response:
        try:
            asked = _parse(json.loads(await request.read()))
        except (ValueError, TypeError, KeyError) as error:
            return _error(400, "BadRequestError", f"invalid request: {error}")
        try:
            reply = await self._backend.chat(asked, timeout=TIMEOUT_SECONDS)
        except LLMError as error:
            return _llm_error(error)
        self._served += 1
        usage = reply.usage
        message = {"role": "assistant", "content": reply.text}
        return web.json_response(
            {
                "id": f"chatcmpl-{self._served}",
                "object": "chat.completion",
                "created": 0,
                "model": reply.model,
                "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
                "usage": {
                    "prompt_tokens": usage.prompt_tokens,
                    "completion_tokens": usage.completion_tokens,
                    "total_tokens": usage.total_tokens,
                    "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
                },
            }
        )

    async def embeddings(self, request: web.Request) -> web.Response:
        try:
            asked = _parse_embedding(json.loads(await request.read()))
        except (ValueError, TypeError, KeyError) as error:
            return _error(400, "BadRequestError", f"invalid request: {error}")
        try:
            reply = await self._backend.embed(asked, timeout=TIMEOUT_SECONDS)
        except LLMError as error:
            return _llm_error(error)
        data = [
            {"object": "embedding", "index": index, "embedding": list(vector)}
            for index, vector in enumerate(reply.vectors)
        ]
        tokens = reply.usage.prompt_tokens
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return web.json_response({"object": "list", "data": data, "model": reply.model, "usage": usage})

    async def models(self, request: web.Request) -> web.Response:
        listed = [
            {"id": name, "object": "model", "created": 0, "owned_by": "flowevolve-sim"} for name in self._backend.served
        ]
        return web.json_response({"object": "list", "data": listed})

    async def health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def metrics(self, request: web.Request) -> web.Response:
        stats, label = self._backend.service.stats, f'{{model_name="{self._backend.model}"}}'
        gauges = {"num_requests_running": stats.running, "num_requests_waiting": stats.waiting}
        counters = {
            "prompt_tokens_total": stats.prompt_tokens,
            "generation_tokens_total": stats.output_tokens,
            "prefix_cache_queries_total": stats.prompt_tokens,
            "prefix_cache_hits_total": stats.cached_tokens,
            "request_success_total": stats.finished,
            "admission_rejections_total": stats.refused,
        }
        lines = [
            f"# TYPE vllm:{name} {kind}\nvllm:{name}{label} {value}"
            for kind, values in (("gauge", gauges), ("counter", counters))
            for name, value in values.items()
        ]
        return web.Response(text="\n".join(lines) + "\n", content_type="text/plain")


def _parse(body: object) -> ChatRequest:
    """The request a body asks for.

    Raises:
        ValueError, TypeError, KeyError: if it does not have the form of one.
    """
    if not isinstance(body, dict):
        raise TypeError("the body must be a JSON object")
    messages = body["messages"]
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages must be a list with at least one message")
    if body.get("stream"):
        raise ValueError("streaming is not simulated")
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    return ChatRequest(
        model=str(body["model"]),
        messages=tuple(_message(message) for message in messages),
        temperature=body.get("temperature"),
        max_tokens=None if most is None else int(most),
        seed=body.get("seed"),
        priority=body.get("priority"),
    )


def _parse_embedding(body: object) -> EmbedRequest:
    """As `_parse`, for texts to turn into vectors: one, or a list."""
    if not isinstance(body, dict):
        raise TypeError("the body must be a JSON object")
    texts = body["input"]
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError("input must be a text or a list with at least one text")
    return EmbedRequest(str(body["model"]), tuple(texts))


def _message(message: object) -> Message:
    if (
        not isinstance(message, dict)
        or message.get("role") not in _ROLES
        or not isinstance(message.get("content"), str)
    ):
        raise ValueError(f"a message needs a role among {', '.join(_ROLES)} and a text content")
    return Message(message["role"], message["content"])


def _llm_error(error: LLMError) -> web.Response:
    match error:
        case OverloadedError():
            headers = {} if error.retry_after is None else {"Retry-After": str(math.ceil(error.retry_after))}
            return _error(429, "RateLimitError", str(error), headers)
        case RefusedError():
            return _error(404, "NotFoundError", str(error))
        case ServerError() | UnreachableError():
            return _error(500, "InternalServerError", str(error))
        case _:
            return _error(400, "BadRequestError", str(error))


def _error(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"error": {"message": message, "type": kind, "param": None, "code": status}}
    return web.json_response(body, status=status, headers=headers)
