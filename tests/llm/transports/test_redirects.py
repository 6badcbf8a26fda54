"""A request carries a prompt and a key: it goes to no origin but that of its address, whatever an answer says."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from aiohttp import web

from flowevolve.core.model import ChatRequest, EmbedRequest, LLMError, Message, RefusedError
from tests.support.http_transports import Kind
from tests.support.loopback import answer, server

pytestmark = pytest.mark.anyio

KEY = "sk-of-this-server-0123456789"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def request(*, stream: bool = False) -> ChatRequest:
    return ChatRequest("m", (Message("user", "hello"),), stream=stream)


class Elsewhere:
    """Another server, which notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def handle(self, asked: web.Request) -> web.Response:
        self.asked.append(f"{asked.headers} {await asked.text()}")
        return web.json_response(answer("got it"))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_prompt_is_not_sent_on_to_another_port(kind: Kind, status: int, stream: bool) -> None:
    other = Elsewhere()
    async with server(other.handle) as there:

        async def move(_: web.Request) -> web.Response:
            return web.Response(status=status, headers={"Location": f"{there}/chat/completions"})

        async with server(move) as here:
            transport = kind(here, KEY, max_connections=1)
            said = f"the server at {here.removesuffix('/v1')} redirects requests to {there.removesuffix('/v1')},"
            with pytest.raises(RefusedError, match=said):
                await transport.chat(request(stream=stream), timeout=60)
            with pytest.raises(RefusedError, match=said):
                await transport.embed(EmbedRequest("m", ("hello",)), timeout=60)
            with pytest.raises(RefusedError, match=said):
                await transport.models()
            await transport.aclose()
    assert other.asked == []


@pytest.mark.parametrize("header", ["Location", "URI"])
@pytest.mark.parametrize(
    "form",
    [
        "http://{there}/v1/x",
        "//{there}/v1/x",
        "https://{here}/v1/x",
        "http://localhost:{port}/v1/x",
        "http://{here}@{there}/v1/x",
        "http:\\\\{there}\\v1\\x",
        "http://{there}\\@{here}/v1/x",
        "/\\{there}/v1/x",
        "\thttp://{there}/v1/x",
        "http://{there}#@{here}/v1/x",
        "HTTP://{there}/v1/x",
        "ftp://{there}/v1/x",
        "http:///v1/x",
        "http://[/v1/x",
    ],
)
async def test_there_is_no_other_way_to_send_it_on(kind: Kind, header: str, form: str) -> None:
    other = Elsewhere()
    async with server(other.handle) as there:

        async def move(asked: web.Request) -> web.Response:
            here, port = asked.host, asked.host.rpartition(":")[2]
            location = form.format(there=urlsplit(there).netloc, here=here, port=port)
            return web.Response(status=307 if asked.path.endswith("completions") else 404, headers={header: location})

        async with server(move) as here:
            transport = kind(here, KEY, max_connections=1)
            with pytest.raises(LLMError) as caught:
                await transport.chat(request(), timeout=60)
            await transport.aclose()
    assert other.asked == []
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("form", ["/v1/there", "there", "//{here}/v1/there", "http://{here}/v1/there"])
async def test_within_its_origin_it_goes_on_with_all_it_had(kind: Kind, form: str) -> None:
    async def move(asked: web.Request) -> web.Response:
        if asked.path.endswith("there"):
            assert asked.headers["Authorization"] == f"Bearer {KEY}"
            return web.json_response(answer((await asked.json())["messages"][0]["content"]))
        return web.Response(status=308, headers={"Location": form.format(here=asked.host)})

    async with server(move) as here:
        transport = kind(here, KEY, max_connections=1)
        assert (await transport.chat(request(), timeout=60)).text == "hello"
        await transport.aclose()


async def test_a_host_by_a_name_of_its_own_is_the_same_origin(kind: Kind) -> None:
    async def echo(_: web.Request) -> web.Response:
        return web.json_response(answer("hi"))

    async with server(echo) as here:
        transport = kind(here.replace("127.0.0.1", "LocalHost"), KEY, max_connections=1)
        assert (await transport.chat(request(), timeout=60)).text == "hi"
        await transport.aclose()
