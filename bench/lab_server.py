"""The simulated server in a process of its own, which writes down whom it served; on request, a share of calls fails.

    python -m bench.lab_server LOG [--latency SECONDS] [--faults RATE]

Prints its address. In ``LOG`` a line per request says ``begun``, ``ended`` or ``gone`` (cancelled by its client), the
API key it came with, and `bench.audit.request_key`; a line ``fault`` has the kind in place of the latter.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import signal
from pathlib import Path
from typing import Literal, TextIO, get_args

import anyio
from aiohttp import web
from aiohttp.typedefs import Handler

from bench.audit import request_key
from flowevolve import clock
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES, APIProfile, OutputLength, Profile
from flowevolve.sim.rules import RulesWorld
from flowevolve.sim.rules_params import PRESETS
from flowevolve.sim.server import serve

Fault = Literal[
    "overloaded", "retry_after", "unavailable", "error", "reset", "cut", "hang", "malformed", "empty", "html"
]
FAULTS: tuple[Fault, ...] = get_args(Fault)


class Lab:
    """Middleware: every chat is logged, and a share ``rate`` goes wrong, all kinds alike."""

    def __init__(self, log: TextIO, rate: float, seed: int) -> None:
        self._log = log
        self._rate = rate
        self._random = random.Random(seed)

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method != "POST":
            return await handler(request)
        who = request.headers.get("Authorization", "-").removeprefix("Bearer ")
        if self._random.random() < self._rate:
            fault = self._random.choice(FAULTS)
            self._say("fault", who, fault)
            return await _play(fault, request, handler)
        body = json.loads(await request.read())
        messages = [(message["role"], message["content"]) for message in body["messages"]]
        key = request_key(messages, body.get("seed"))
        self._say("begun", who, key)
        try:
            response = await handler(request)
        except anyio.get_cancelled_exc_class():
            self._say("gone", who, key)
            raise
        self._say("ended", who, key)
        return response

    def _say(self, *words: str) -> None:
        self._log.write(" ".join(words) + "\n")
        self._log.flush()


async def _play(fault: Fault, request: web.Request, handler: Handler) -> web.StreamResponse:
    match fault:
        case "overloaded":
            return web.Response(status=429)
        case "retry_after":
            return web.Response(status=429, headers={"Retry-After": "1"})
        case "unavailable":
            return web.Response(status=503)
        case "error":
            return web.Response(status=500)
        case "malformed":
            return web.Response(text='{"choices', content_type="application/json")
        case "empty":
            return web.json_response({"choices": []})
        case "html":
            return web.Response(text="<html>Please sign in.</html>", content_type="text/html")
        case "hang":
            await anyio.sleep_forever()
        case "cut":
            await _send_half(request, await handler(request))
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _send_half(request: web.Request, answer: web.StreamResponse) -> None:
    assert isinstance(answer, web.Response)
    assert isinstance(answer.body, bytes)
    cut = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(answer.body))})
    await cut.prepare(request)
    await cut.write(answer.body[: len(answer.body) // 2])


def steady(seconds: float) -> APIProfile:
    """A server that always takes as long, however much it has to do."""
    none = OutputLength(median=0.0, sigma=0.0, most=8192)
    return APIProfile(none, seconds, 0.0, 0.0, requests_per_minute=math.inf, tokens_per_minute=math.inf)


async def go(log: TextIO, profile: Profile, rate: float, seed: int) -> None:
    backend = SimBackend(RulesWorld(PRESETS["normal"]), profile)
    async with serve(backend, middlewares=[web.middleware(Lab(log, rate, seed))]) as url:
        print(url, flush=True)
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--latency", type=float, metavar="SECONDS", help="of every call; by default profile fast-demo")
    parser.add_argument("--faults", type=float, default=0.0, metavar="RATE")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with arguments.log.open("w", encoding="ascii") as log:
        profile = PROFILES["fast-demo"] if arguments.latency is None else steady(arguments.latency)
        clock.run(go, log, profile, arguments.faults, arguments.seed)


if __name__ == "__main__":
    main()
