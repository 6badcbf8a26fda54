"""The simulated server over HTTP: an OpenAI-compatible API with vLLM's error bodies and metric names."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
from aiohttp import web
from aiohttp.typedefs import Middleware

from flowevolve.core.model import ChatRequest, EmbedReply, EmbedRequest, LLMError
from flowevolve.llm.transports.api_server import serve_api
from flowevolve.llm.transports.server_side import StreamEvents, answer_body
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.faults import Fault, status_error
from flowevolve.sim.http_faults import REDIRECT_LOOP, play_on_answer, play_without_answer, redirect_to_itself
from flowevolve.sim.service_model import BLOCK_TOKENS

TIMEOUT_SECONDS = 3600.0


@asynccontextmanager
async def serve(
    backend: SimBackend, host: str = "127.0.0.1", port: int = 0, middlewares: Sequence[Middleware] = ()
) -> AsyncGenerator[str]:
    """Serve on this address behind these middlewares, and yield the API's base URL. Port 0 takes any free port.

    When a client disconnects, its request is cancelled and leaves the batch.

    Raises:
        OSError: if the address can't be listened on.
    """
    lost = web.route("*", REDIRECT_LOOP, redirect_to_itself)
    async with serve_api(_SimulatedAPI(backend), host, port, middlewares=middlewares, more_routes=[lost]) as url:
        yield url


class _SimulatedAPI:
    owner = "flowevolve-sim"

    def __init__(self, backend: SimBackend) -> None:
        self._backend = backend
        self._served = 0

    async def chat(self, request: web.Request, asked: ChatRequest, *, usage: bool) -> web.StreamResponse:
        self._served += 1
        fault = self._backend.next_fault(asked)
        try:
            if fault is not None:
                return await self._faulty(fault, request, asked, self._served)
            if asked.stream:
                return await self._streamed(request, asked, self._served, usage=usage)
        except ConnectionError:
            return web.Response()  # the client has disconnected, so nobody reads this
        reply = await self._backend.answer(asked, timeout=TIMEOUT_SECONDS)
        return web.Response(body=answer_body(reply, self._served), content_type="application/json")

    async def _faulty(self, fault: Fault, request: web.Request, asked: ChatRequest, number: int) -> web.StreamResponse:
        if (refused := status_error(fault)) is not None:
            raise refused
        played = await play_without_answer(fault, request)
        if played is not None:
            return played
        reply = await self._backend.answer(asked, timeout=TIMEOUT_SECONDS)
        return await play_on_answer(fault, request, reply, number, streamed=asked.stream)

    async def _streamed(
        self, request: web.Request, asked: ChatRequest, number: int, *, usage: bool
    ) -> web.StreamResponse:
        """Send the text in pieces, spread evenly over the time that writing it was expected to take when it began.

        If the load changes meanwhile, the answer still ends when it should: what is left of the text is sent at once.
        """
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        events, finished = StreamEvents(asked.model, number), anyio.Event()

        async def write(text: str, seconds: float) -> None:
            pieces = events.pieces(text)
            with suppress(ConnectionError):  # the client has disconnected; this handler is about to be cancelled
                await response.prepare(request)
                for piece in pieces:
                    with anyio.move_on_after(seconds / len(pieces)):
                        await finished.wait()
                    await response.write(piece)

        refused: LLMError | None = None
        async with anyio.create_task_group() as tasks:

            def begin(text: str, seconds: float) -> None:
                tasks.start_soon(write, text, seconds)

            try:
                reply = await self._backend.answer(asked, timeout=TIMEOUT_SECONDS, on_writing=begin)
            except LLMError as error:
                refused = error
            finished.set()
        if refused is not None:
            raise refused
        if response.prepared:  # otherwise the client has disconnected
            await response.write(events.end(reply, usage=usage))
        return response

    async def embed(self, request: web.Request, asked: EmbedRequest) -> EmbedReply:
        return await self._backend.embed(asked, timeout=TIMEOUT_SECONDS)

    async def models(self) -> Sequence[str]:
        return self._backend.served

    async def metrics(self) -> str:
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
        load = await self._backend.load()
        if load is not None and load.cache_tokens is not None:
            blocks = f'num_gpu_blocks="{load.cache_tokens // BLOCK_TOKENS}",block_size="{BLOCK_TOKENS}"'
            lines.append(f"# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{{{blocks}}} 1.0")
        return "\n".join(lines) + "\n"
