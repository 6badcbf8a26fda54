"""Proxies of the environment, over both transports."""

import anyio
import anyio.abc
import pytest

from flowevolve.core.model import UnreachableError
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport
from tests.support.faults import said
from tests.support.loopback import connected, echo, server

pytestmark = pytest.mark.anyio

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=[OpenAITransport, AioHTTPTransport])
def make(request):
    return request.param


@pytest.fixture
def environment(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


async def refuse(stream) -> None:
    """A proxy that wants another password."""
    async with stream:
        while b"\r\n\r\n" not in await stream.receive():
            pass
        await stream.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what the SDK brings along
@pytest.mark.parametrize("password", ["short", "a-long-password", "with%2Fslash-and%40at"])
async def test_a_proxy_that_refuses_is_named_without_its_password(make, environment, password) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    environment.setenv("https_proxy", f"http://user:{password}@127.0.0.1:{port}")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, refuse)
        async with connected(make, "https://api.example.com/v1", "secret") as transport:
            with pytest.raises(UnreachableError, match="407") as caught:
                await transport.chat(said("hello"), timeout=60)
        tasks.cancel_scope.cancel()
    assert password not in str(caught.value)
    assert "user" not in str(caught.value)


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_no_proxy_leads_to_this_machine(make, environment, name, host) -> None:
    environment.setenv(name, "http://127.0.0.1:9")
    async with server(echo) as url, connected(make, url.replace("127.0.0.1", host)) as transport:
        assert (await transport.chat(said("hello"), timeout=60)).text == "hello"


async def test_a_proxy_leads_elsewhere(make, environment) -> None:
    asked = []

    async def proxy(stream) -> None:
        async with stream:
            asked.append((await stream.receive()).split(b"\r\n")[0])
            await stream.send(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    environment.setenv("http_proxy", f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, proxy)
        async with connected(make, "http://api.example.com/v1") as transport:
            with pytest.raises(UnreachableError):
                await transport.chat(said("hello"), timeout=60)
        tasks.cancel_scope.cancel()
    assert asked == [b"POST http://api.example.com/v1/chat/completions HTTP/1.1"]
