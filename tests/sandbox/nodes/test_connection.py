"""Whoever does not know the secret of a run neither becomes a node of it nor is taken for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from flowevolve._util.tasks import beside
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.nodes.cluster import NodeLostError
from flowevolve.sandbox.nodes.connection import JoinedNode, join, receive_node

pytestmark = pytest.mark.anyio

SETTINGS = SandboxSettings(preload=())


class Run:
    """What a run does where nodes join it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.joined: list[JoinedNode] = []
        self.some = anyio.Event()

    def note(self, node: JoinedNode) -> None:
        self.joined.append(node)
        self.some.set()


@asynccontextmanager
async def run_with(secret: str, strangers: int = 10) -> AsyncIterator[Run]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    run = Run(listener.extra(SocketAttribute.local_port))
    receive = partial(receive_node, secret=secret, joined=run.note, meeting=anyio.CapacityLimiter(strangers))
    with anyio.fail_after(120):
        async with listener, beside() as tasks:
            tasks.start_soon(listener.serve, receive, tasks)
            yield run
            for node in run.joined:
                await node.end()


async def test_a_node_that_knows_the_secret_joins_and_ends_with_the_run() -> None:
    async with anyio.create_task_group() as tasks:
        async with run_with("a secret") as run:
            tasks.start_soon(join, "127.0.0.1", run.port, "a secret", "7")
            await run.some.wait()
            (node,) = run.joined
            about = json.loads(await node.begin(SETTINGS, slots=3))
            assert (node.name, node.slots, about["refused"]) == ("7", 3, None)
        assert node.gone.is_set()
        with pytest.raises(NodeLostError):
            await node.cancel(b"[]")


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"])
async def test_a_node_that_was_killed_can_be_ended(anyio_backend: tuple[str, dict[str, bool]]) -> None:
    """Under uvloop, which does not take the end of a connection that is closed."""
    pytest.importorskip("uvloop")
    async with anyio.create_task_group() as tasks, run_with("a secret") as run:
        tasks.start_soon(join, "127.0.0.1", run.port, "a secret", "7")
        await run.some.wait()
        (node,) = run.joined
        node.kill()
        await node.gone.wait()
        await anyio.wait_all_tasks_blocked()


async def test_one_that_knows_another_secret_is_no_node_and_hears_from_no_run() -> None:
    async with run_with("a secret") as run:
        with pytest.raises(NodeLostError, match=rf"127.0.0.1:{run.port} is not the run that this node is for"):
            await join("127.0.0.1", run.port, "another", "7")
        assert run.joined == []


async def test_one_that_says_it_is_a_node_and_proves_nothing_is_none() -> None:
    async with run_with("a secret") as run:
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, b"\0" * 17, bytes(16) + b"\x02[]", b""):
            async with await anyio.connect_tcp("127.0.0.1", run.port) as stream:
                await stream.send(said)
                await stream.send_eof()
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await stream.receive()
        assert run.joined == []


async def test_of_many_that_prove_nothing_only_so_many_are_heard() -> None:
    async with run_with("a secret", strangers=1) as run, await anyio.connect_tcp("127.0.0.1", run.port) as first:
        async with await anyio.connect_tcp("127.0.0.1", run.port) as second:
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await second.receive()
        hello = b'{"name": "7", "nonce": "n"}'
        await first.send(bytes(16) + bytes([len(hello)]) + hello)
        assert b"proof" in await first.receive()  # it was heard all along
        await first.aclose()
        async with beside() as tasks:
            tasks.start_soon(join_again, run)
            await run.some.wait()
            tasks.cancel_scope.cancel()


async def join_again(run: Run) -> None:
    """Join until there is room for that."""
    while True:
        with suppress(NodeLostError):
            await join("127.0.0.1", run.port, "a secret", "7")


async def test_an_echo_of_what_a_node_says_is_no_run() -> None:
    async def echo(stream: SocketStream) -> None:
        async with stream:
            async for said in stream:
                await stream.send(said)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, beside() as tasks:
        tasks.start_soon(listener.serve, echo, tasks)
        with pytest.raises(NodeLostError, match="is not the run"):
            await join("127.0.0.1", listener.extra(SocketAttribute.local_port), "a secret", "7")


async def test_where_no_run_is_a_node_says_so() -> None:
    with pytest.raises(NodeLostError, match=r"there is no run at 127.0.0.1:1 "):
        await join("127.0.0.1", 1, "a secret", "7")
