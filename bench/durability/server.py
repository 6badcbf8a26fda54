"""The simulated server in a process of its own, which logs every request; if asked to, it lets a share of calls fail.

    python -m bench.durability.server LOG [--latency SECONDS] [--faults RATE] [--world NAME]

It prints its address. ``LOG`` gets a line when a request begins (``begun``) and when it ends (``ended``) or is
cancelled by its client (``gone``), with the API key it came with and its `audit.request_key`. At the end, a line
``faults`` for each kind of fault says how often it was played.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import anyio
from aiohttp import web
from aiohttp.typedefs import Handler

from bench.durability.audit import request_key
from flowevolve._util import clock
from flowevolve.journal.journal import EMBEDDED
from flowevolve.llm.transports.server_side import read_embedding
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.faults import Faults
from flowevolve.sim.profiles import PROFILES, APIProfile, OutputLength, Profile
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.catalog import WORLDS
from flowevolve.sim.worlds.rules.params import PRESETS


class RequestLog:
    """Middleware that logs every chat and every request for embeddings."""

    def __init__(self, log: TextIO) -> None:
        self._log = log

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method != "POST":
            return await handler(request)
        who = request.headers.get("Authorization", "-").removeprefix("Bearer ")
        body = json.loads(await request.read())
        key = request_key(_said(body), body.get("seed"))
        self.write("begun", who, key)
        try:
            response = await handler(request)
        except anyio.get_cancelled_exc_class():
            self.write("gone", who, key)
            raise
        self.write("ended", who, key)
        return response

    def write(self, *words: str) -> None:
        self._log.write(" ".join(words) + "\n")
        self._log.flush()


def _said(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The messages of a request, or the texts to embed, in the form the journal has them."""
    if "messages" in body:
        return [(message["role"], message["content"]) for message in body["messages"]]
    return [(EMBEDDED, text) for text in read_embedding(body).texts]


def steady(seconds: float) -> APIProfile:
    """A server that takes the same time for every call, whatever its load."""
    none = OutputLength(median=0.0, sigma=0.0, most=8192)
    return APIProfile(none, seconds, 0.0, 0.0, requests_per_minute=math.inf, tokens_per_minute=math.inf)


async def serve_until_ended(log: TextIO, profile: Profile, faults: Faults, world: str) -> None:
    backend, requests = SimBackend(WORLDS[world](PRESETS["normal"]), profile, faults=faults), RequestLog(log)
    async with serve(backend, middlewares=[web.middleware(requests)]) as url:
        print(url, flush=True)
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                break
    for kind, count in sorted(faults.played.items()):
        requests.write("faults", kind, str(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--latency", type=float, metavar="SECONDS", help="of every call; by default profile fast-demo")
    parser.add_argument("--faults", type=float, default=0.0, metavar="RATE")
    parser.add_argument("--world", choices=list(WORLDS), default="rules")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with arguments.log.open("w", encoding="ascii") as log:
        profile = PROFILES["fast-demo"] if arguments.latency is None else steady(arguments.latency)
        clock.run(serve_until_ended, log, profile, Faults(arguments.faults, seed=arguments.seed), arguments.world)


if __name__ == "__main__":
    main()
