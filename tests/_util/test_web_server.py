"""Serving on an address."""

from __future__ import annotations

import pytest
from aiohttp import ClientSession, web

from flowevolve._util.web_server import listening

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_its_url_can_be_asked(host: str) -> None:
    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_get("/there", hello)
    async with listening(app, host, 0) as url, ClientSession() as session, session.get(f"{url}/there") as response:
        assert await response.text() == "hello"


async def test_a_port_that_is_taken_is_told() -> None:
    async with listening(web.Application(), "127.0.0.1", 0) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(OSError, match="address already in use"):
            async with listening(web.Application(), "127.0.0.1", port):
                pass
