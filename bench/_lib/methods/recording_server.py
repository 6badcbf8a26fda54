"""A server that records its requests, in a process of its own: simulated, or in front of another server.

    python -m bench._lib.methods.recording_server sim PROFILE WORKLOAD SPEED
    python -m bench._lib.methods.recording_server URL

It prints its address. `GET /recording` answers with the spans so far and the process's CPU time; `DELETE` starts over
and answers whether the server has cleared its cache of prompts, too. In front of another server, `GET
/recording/requests` answers with the bodies of all chats. The model behind another server may be too small to write a
reflection in the form that it is asked for. The recording server then puts the reflection into that form on its way
back, for all methods alike.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path

import anyio
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web
from aiohttp.typedefs import Handler

from bench._lib.methods.recording import CHAT, RECORDING, REQUESTS, Recorder, role_of
from bench._lib.methods.workloads import WORKLOADS, WholeLength
from flowevolve._util import clock
from flowevolve._util.web_server import listening
from flowevolve.prompts.reading.fences import fence
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import APIProfile, Profile, find_profile
from flowevolve.sim.server import serve
from flowevolve.sim.service_model import make_service
from flowevolve.sim.worlds.base import World
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

PRESET = "normal"
MOST_TOKENS = 8192
MEASURED = "qwen3-8b-h100"
REQUESTS_PER_MINUTE, TOKENS_PER_MINUTE = 10_000.0, 10_000_000.0
"""Rate limits of the API: those of the provider's usage tier 4, so that the client's limit decides, not the
account's.
"""
RESET = "/reset_prefix_cache?reset_running_requests=true"
"""The path at which vLLM in its development mode clears its cache of prompts; other servers have nothing there."""
_PASSED_ON = ("Content-Type", "Retry-After")


def shaped(profile: str, workload: str, speed: float) -> Profile:
    """A profile whose answers have the workload's lengths, sped up by the factor ``speed``.

    ``profile`` is the name of a profile, or the file of a measured server. The latter's answers are as long as those of
    `MEASURED`.
    """
    outputs = WORKLOADS[workload].outputs
    lengths = outputs.get(profile, outputs[MEASURED])
    made = replace(find_profile(profile), output=WholeLength(lengths.median, lengths.sigma, MOST_TOKENS))
    if isinstance(made, APIProfile):
        made = replace(made, requests_per_minute=REQUESTS_PER_MINUTE, tokens_per_minute=TOKENS_PER_MINUTE)
    return made.faster(speed)


class _RecordingMiddleware:
    """Middleware that answers at `RECORDING` and records all other requests."""

    def __init__(self, fresh: Callable[[], Awaitable[bool]], *, keeps_bodies: bool = False) -> None:
        self._recorder = Recorder(keeps_bodies=keeps_bodies)
        self._fresh = fresh

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path == REQUESTS:
            return web.json_response(self._recorder.bodies)
        if request.path != RECORDING:
            return await self._recorder(request, handler)
        if request.method == "DELETE":
            self._recorder.clear()
            return web.json_response({"fresh": await self._fresh()})
        spans = [list(asdict(span).values()) for span in self._recorder.spans()]
        return web.json_response(
            {"cpu": time.process_time(), "waited": _waited(), "now": time.monotonic(), "spans": spans}
        )


def _waited() -> float:
    """Seconds that this process's main thread was ready to run but had no core; 0 if the kernel doesn't count them."""
    counts = Path("/proc/self/schedstat")
    return int(counts.read_text().split()[1]) / 1e9 if counts.exists() else 0.0


@asynccontextmanager
async def simulated(profile: Profile, world: World | None = None) -> AsyncGenerator[str]:
    """A recording server that answers from a simulated world, by default `rules`."""
    backend = SimBackend(world or RulesWorld(PRESETS[PRESET]), profile)

    async def fresh() -> bool:
        backend.service = make_service(profile)  # no prefix is cached and no rate limit used up
        return True

    async with serve(backend, middlewares=[web.middleware(_RecordingMiddleware(fresh))]) as url:
        yield url


@asynccontextmanager
async def in_front_of(url: str) -> AsyncGenerator[str]:
    """A recording server that passes every request on to another server, and cancels it if the client goes away."""
    upstream = url.rstrip("/").removesuffix("/v1")
    connector = TCPConnector(limit=0, keepalive_timeout=4.0)
    async with ClientSession(
        connector=connector, cookie_jar=DummyCookieJar(), timeout=ClientTimeout(total=None)
    ) as session:

        async def forward(request: web.Request) -> web.Response:
            body, headers = await request.read(), {"Content-Type": "application/json"}
            async with session.request(request.method, upstream + request.path, data=body, headers=headers) as answer:
                kept = {name: answer.headers[name] for name in _PASSED_ON if name in answer.headers}
                content = await answer.read()
            if answer.status == 200 and request.path == CHAT and role_of(json.loads(body)) == "reflection":
                content = _fenced(content)
            return web.Response(body=content, status=answer.status, headers=kept)

        async def fresh() -> bool:
            async with session.post(upstream + RESET) as answer:
                return answer.status == 200 and json.loads(await answer.read()).get("success") is True

        recording = web.middleware(_RecordingMiddleware(fresh, keeps_bodies=True))
        app = web.Application(client_max_size=64 * 2**20, middlewares=[recording])
        app.router.add_route("*", "/{path:.*}", forward)
        async with listening(app, "127.0.0.1", 0) as address:
            yield f"{address}/v1"


def _fenced(answer: bytes) -> bytes:
    """The answer with its text in a fenced block, if it has none yet."""
    content = json.loads(answer)
    message = content["choices"][0]["message"]
    if "```" not in (message["content"] or ""):
        message["content"] = fence(message["content"] or "-")
    return json.dumps(content).encode()


def _server(arguments: list[str]) -> AbstractAsyncContextManager[str]:
    if arguments[0] != "sim":
        return in_front_of(arguments[0])
    profile, workload, speed = arguments[1:]
    return simulated(shaped(profile, workload, float(speed)))


async def serve_until_ended(server: AbstractAsyncContextManager[str]) -> None:
    """Print the server's address, and let it serve until this process is told to end."""
    async with server as url:
        print(url, flush=True)
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                return


if __name__ == "__main__":
    clock.run(serve_until_ended, _server(sys.argv[1:]))
