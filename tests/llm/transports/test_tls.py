"""A server whose certificate nobody vouches for, and one that does not speak TLS at all."""

import ssl

import pytest
import trustme
from aiohttp import web

from flowevolve.core.model import UnreachableError
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport
from tests.support.faults import leaving_nothing, said

pytestmark = pytest.mark.anyio


def self_signed():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.mark.parametrize("make", [OpenAITransport, AioHTTPTransport])
@pytest.mark.parametrize(("context", "said_of_it"), [(self_signed, "certificate"), (lambda: None, "(?i)ssl")])
async def test_without_trust_there_is_no_call(make, context, said_of_it) -> None:
    asked = []

    async def handle(request):
        asked.append(request.path)
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    async with leaving_nothing():
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context()).start()
        transport = make(f"https://127.0.0.1:{runner.addresses[0][1]}/v1", "secret", max_connections=1)
        try:
            for _ in range(2):
                with pytest.raises(UnreachableError, match=said_of_it):
                    await transport.chat(said("hello"), timeout=60)
        finally:
            await transport.aclose()
            await runner.cleanup()
    assert asked == []
