"""A server in front of a real one, which gives the answers other words and keeps their lengths and times.

    python -m bench.prediction.worded URL

A small model's own words don't depend on how good a prompt is, so it would be chance which edits are accepted, and how
often all examples are validated for them. With `words` that is the same in a run and in its prediction.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

from bench._lib.methods.recording import CHAT
from bench._lib.methods.recording_server import serve_until_ended
from bench.prediction.replies import words
from flowevolve._util import clock
from flowevolve._util.web_server import listening
from flowevolve.llm.transports.server_side import read_request


@asynccontextmanager
async def worded(url: str) -> AsyncGenerator[str]:
    """Pass everything on to a server, and put `words` into its answers; yields the base URL."""
    upstream = url.rstrip("/").removesuffix("/v1")
    connector, timeout = TCPConnector(limit=0, keepalive_timeout=4.0), ClientTimeout(total=None)
    async with ClientSession(connector=connector, cookie_jar=DummyCookieJar(), timeout=timeout) as session:

        async def forward(request: web.Request) -> web.Response:
            body, headers = await request.read(), {"Content-Type": "application/json"}
            async with session.request(
                request.method, f"{upstream}{request.path_qs}", data=body, headers=headers
            ) as it:
                content = await it.read()
            if it.status == 200 and request.path == CHAT:
                content = _with_words(body, content)
            return web.Response(body=content, status=it.status, content_type=it.content_type)

        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", forward)
        async with listening(app, "127.0.0.1", 0) as address:
            yield f"{address}/v1"


def _with_words(asked: bytes, answer: bytes) -> bytes:
    content = json.loads(answer)
    choice = content["choices"][0]
    choice["message"]["content"] = words(read_request(json.loads(asked)))
    choice["finish_reason"] = "stop"  # the words are whole, though the model's own answer may have been cut off
    return json.dumps(content).encode()


if __name__ == "__main__":
    clock.run(serve_until_ended, worded(sys.argv[1]))
