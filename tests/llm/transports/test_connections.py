"""Connections of every transport to a server on loopback: cut, silent, used again, closed."""

import json
import socket
from collections import Counter

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web

from flowevolve.core.model import ServerError, Transport, UnreachableError
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from tests.support.loopback import REQUEST, answer, chat, connected, echo, fails, raw_server, said, server, serving

pytestmark = pytest.mark.anyio


async def test_an_answer_that_is_not_http(make) -> None:
    async def shout(stream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"GO AWAY\r\n\r\n")

    async with raw_server(make, shout) as transport:
        await fails(ServerError, transport.chat(REQUEST, timeout=60))


async def test_what_a_server_says_before_it_answers_is_not_its_answer(make) -> None:
    body = json.dumps(answer("hi")).encode()

    async def hint(stream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async with raw_server(make, hint) as transport:
        assert (await transport.chat(REQUEST, timeout=60)).text == "hi"


@pytest.mark.parametrize("length", [b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n9\r\n{", None])
async def test_a_connection_cut_before_or_within_the_answer(make, length) -> None:
    async def cut(stream) -> None:
        async with stream:
            await stream.receive()
            if length is not None:
                await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + length)

    async with raw_server(make, cut) as transport:
        await fails(UnreachableError, transport.chat(REQUEST, timeout=60))


async def test_a_reset(make) -> None:
    async def reset(stream) -> None:
        await stream.receive()
        raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        await stream.aclose()

    async with raw_server(make, reset) as transport:
        await fails(UnreachableError, transport.chat(REQUEST, timeout=60))


async def test_nobody_listens(make) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        async with connected(make, f"http://127.0.0.1:{taken.getsockname()[1]}/v1") as transport:
            error = await fails(UnreachableError, transport.chat(REQUEST, timeout=60))
    assert "127.0.0.1" in str(error)
    assert "Connect call failed" not in str(error)


@pytest.mark.parametrize("url", ["127.0.0.1:9/v1", "ftp://127.0.0.1:9/v1", "http:///v1"])
async def test_an_address_that_is_none(make, url) -> None:
    async with connected(make, url) as transport:
        await fails(UnreachableError, transport.chat(REQUEST, timeout=60))


async def test_redirects_in_a_circle(make) -> None:
    async def again(request):
        raise web.HTTPTemporaryRedirect(request.path)

    await fails(UnreachableError, chat(make, again))


class Hanging:
    """A handler that never answers and says when it was called and when its client went away."""

    def __init__(self) -> None:
        self.called, self.left = anyio.Event(), anyio.Event()

    async def handle(self, _request) -> None:
        self.called.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.left.set()


async def test_no_answer_in_time_closes_the_request(make) -> None:
    hanging = Hanging()
    async with serving(make, hanging.handle) as transport:
        error = await fails(UnreachableError, transport.chat(REQUEST, timeout=0.25))
        assert "within 0.25 s" in str(error)
        if hanging.called.is_set():  # else the machine is busy, and the server has not heard of it
            with anyio.fail_after(60):
                await hanging.left.wait()


async def test_an_answer_that_trickles_in_is_cut_off_too(make) -> None:
    async def trickle(request) -> None:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await anyio.sleep(0.001)

    await fails(UnreachableError, chat(make, trickle, seconds=0.05))


async def test_cancelling_closes_the_request_at_once(make) -> None:
    hanging = Hanging()
    async with serving(make, hanging.handle) as transport, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: transport.chat(REQUEST, timeout=600))
        with anyio.fail_after(60):
            await hanging.called.wait()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await hanging.left.wait()


async def test_calls_side_by_side_get_their_own_answers(make) -> None:
    everybody, arrived = anyio.Event(), Counter[str]()

    async def wait_for_all(request):
        arrived[request.transport.get_extra_info("peername")] += 1
        if arrived.total() == 200:
            everybody.set()
        await everybody.wait()
        return await echo(request)

    async with serving(make, wait_for_all, max_connections=200) as transport:
        await all_say_their_own(transport)
    assert len(arrived) == 200


async def test_connections_are_bounded_and_used_again(make) -> None:
    connections = Counter[str]()

    async def count(request):
        connections[request.transport.get_extra_info("peername")] += 1
        return await echo(request)

    async with serving(make, count, max_connections=4) as transport:
        await all_say_their_own(transport)
    assert connections.total() == 200
    assert len(connections) == 4


async def all_say_their_own(transport) -> None:
    replies: dict[int, str] = {}

    async def call(number) -> None:
        replies[number] = (await transport.chat(said(f"I am {number}"), timeout=60)).text

    async with anyio.create_task_group() as tasks:
        for number in range(200):
            tasks.start_soon(call, number)
    assert replies == {number: f"I am {number}" for number in range(200)}


async def test_it_is_a_transport_with_an_address(make) -> None:
    async with connected(make, "http://example.invalid/v1") as transport:
        assert transport.base_url == "http://example.invalid/v1"
        assert isinstance(transport, Transport)


async def test_closing_twice_and_closing_unused(make) -> None:
    async with serving(make, echo) as transport, connected(make, transport.base_url) as unused:
        await transport.chat(REQUEST, timeout=60)
        for each in (transport, unused):
            await each.aclose()
            await each.aclose()


async def test_closing_ends_open_calls(make) -> None:
    hanging = Hanging()
    async with serving(make, hanging.handle) as transport, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: fails(UnreachableError, transport.chat(REQUEST, timeout=600)))
        with anyio.fail_after(60):
            await hanging.called.wait()
            await transport.aclose()


def test_after_closing_another_loop_can_use_the_fast_transport(free_tcp_port) -> None:
    transport = AioHTTPTransport(f"http://127.0.0.1:{free_tcp_port}/v1", None, max_connections=1)

    async def go() -> str:
        async with server(echo, free_tcp_port):
            try:
                return (await transport.chat(REQUEST, timeout=60)).text
            finally:
                await transport.aclose()

    assert [anyio.run(go), anyio.run(go)] == ["hello", "hello"]
