"""Several runs, the gateway and the server, with real connections between all of them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from aiohttp import ClientSession, web
from anyio.abc import TaskGroup

from flowevolve._util.web_server import listening
from flowevolve.core.model import ChatReply, ChatRequest, Message, ServerError, UnreachableError, Usage
from flowevolve.gateway.gateway import Gateway
from flowevolve.gateway.server import serve
from flowevolve.llm.client.cache import ResponseCache, open_cache
from flowevolve.llm.scheduling.metrics_probe import parse_load
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.sender import Sender
from flowevolve.llm.transports.server_side import answer_body, read_request

pytestmark = pytest.mark.anyio


@dataclass
class Server:
    """Answers each request with its number, once it is open, after the failures that it is told."""

    failures: list[web.Response] = field(default_factory=list)
    is_open: anyio.Event = field(default_factory=anyio.Event)
    asked: list[str] = field(default_factory=list)
    arrived: anyio.Event = field(default_factory=anyio.Event)
    busy: int = 0
    most_busy: int = 0

    async def chat(self, request: web.Request) -> web.Response:
        asked = read_request(json.loads(await request.read()))
        self.asked.append(asked.messages[0].content)
        self.arrived.set()
        if self.failures:
            return self.failures.pop(0)
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        number = len(self.asked)
        try:
            await self.is_open.wait()
        finally:
            self.busy -= 1
        return web.Response(
            body=answer_body(ChatReply(f"{number}", Usage(10, 10)), number), content_type="application/json"
        )

    @asynccontextmanager
    async def there(self, port: int = 0) -> AsyncGenerator[str]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.chat)
        async with listening(app, "127.0.0.1", port) as address:
            yield f"{address}/v1"


def opened(*failures: web.Response) -> Server:
    server = Server(list(failures))
    server.is_open.set()
    return server


@asynccontextmanager
async def gateway_to(
    url: str, concurrency: int = 4, cache: ResponseCache | None = None
) -> AsyncGenerator[tuple[Gateway, str]]:
    transport = AioHTTPTransport(url, None, max_connections=concurrency)
    gateway = Gateway(transport, concurrency, cache=cache)
    try:
        async with serve(gateway) as address:
            yield gateway, address
    finally:
        await transport.aclose()


@dataclass(frozen=True)
class Run:
    """A run behind the gateway at this address."""

    url: str
    sender: Sender

    async def asks(self, text: str, seed: int | None = None) -> str:
        transport = AioHTTPTransport(self.url, None, max_connections=1, headers=self.sender.headers())
        try:
            return (await transport.chat(ChatRequest("m", (Message("user", text),), seed=seed), timeout=60)).text
        finally:
            await transport.aclose()


async def until_waiting(url: str, requests: int) -> None:
    """Wait until so many requests wait in the gateway."""
    async with ClientSession() as session:
        with anyio.fail_after(60):
            while True:
                async with session.get(f"{url.removesuffix('/v1')}/metrics") as response:
                    load = parse_load(await response.text())
                assert load is not None
                if load.waiting == requests:
                    return


def start(tasks: TaskGroup, runs: Sequence[Run], times: int = 1) -> None:
    for run in runs:
        for _ in range(times):
            tasks.start_soon(run.asks, run.sender.run)


async def test_twenty_runs_neither_starve_nor_flood() -> None:
    server, slots, times = Server(), 4, 6
    async with (
        server.there() as upstream,
        gateway_to(upstream, slots) as (gateway, url),
        anyio.create_task_group() as tasks,
    ):
        runs = [Run(url, Sender(f"run-{number}")) for number in range(20)]
        start(tasks, runs, times)
        await until_waiting(url, len(runs) * times - slots)
        server.is_open.set()
    assert server.most_busy == slots
    assert Counter(server.asked) == {run.sender.run: times for run in runs}
    # The first may all be of one run, as the others had not come. From then on each has its turn before any has another.
    rounds = [server.asked[begin : begin + len(runs)] for begin in range(slots, len(server.asked), len(runs))]
    assert all(max(Counter(each).values()) <= 2 for each in rounds)
    assert [account.requests for account in gateway.accounts()] == [times] * len(runs)


async def test_priorities_and_shares_decide_who_is_next() -> None:
    server = Server()
    async with server.there() as upstream, gateway_to(upstream, 1) as (_, url), anyio.create_task_group() as tasks:
        tasks.start_soon(Run(url, Sender("first")).asks, "first")
        await server.arrived.wait()
        start(tasks, [Run(url, Sender("modest")), Run(url, Sender("double", share=2.0))], 6)
        await until_waiting(url, 12)
        start(tasks, [Run(url, Sender("urgent", priority=-1))], 3)
        await until_waiting(url, 15)
        server.is_open.set()
    assert server.asked[:4] == ["first", *["urgent"] * 3]
    assert Counter(server.asked[4:10]) == {"modest": 2, "double": 4}


async def test_a_429_stays_between_gateway_and_server() -> None:
    server = opened(web.Response(status=429, headers={"Retry-After": "0"}), web.Response(status=429))
    async with server.there() as upstream, gateway_to(upstream) as (_, url):
        assert await Run(url, Sender("a")).asks("hello") == "3"


async def test_what_one_run_was_answered_answers_another_but_not_another_seed(tmp_path: Path) -> None:
    server = opened()
    async with (
        open_cache(tmp_path / "cache") as cache,
        server.there() as upstream,
        gateway_to(upstream, 4, cache) as (_, url),
    ):
        one, two = Run(url, Sender("one")), Run(url, Sender("two"))
        answers = [await run.asks("hello", seed) for seed in (1, 2) for run in (one, two)]
        without_seed = [await run.asks("hello") for run in (one, two, one)]
    assert answers == ["1", "1", "2", "2"]
    assert without_seed == ["3", "4", "5"]


async def test_a_damaged_cache_is_told(tmp_path: Path) -> None:
    server, path = opened(), tmp_path / "cache"
    async with server.there() as upstream:
        async with open_cache(path) as cache, gateway_to(upstream, 4, cache) as (_, url):
            await Run(url, Sender("a")).asks("hello", 1)
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE replies SET reply = '?'")
        async with open_cache(path) as cache, gateway_to(upstream, 4, cache) as (_, url):
            with pytest.raises(ServerError, match="a reply in it is damaged"):
                await Run(url, Sender("a")).asks("hello", 1)


async def test_a_run_that_dies_leaves_its_places_to_the_others() -> None:
    server = Server()
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "dies"}]})
    request = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Flowevolve-Run: dies\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    async with (
        server.there() as upstream,
        gateway_to(upstream, 1) as (gateway, url),
        anyio.create_task_group() as tasks,
    ):
        port = int(url.rpartition(":")[2].removesuffix("/v1"))
        connections = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(3)]
        for connection in connections:
            await connection.send(request.encode())
        await until_waiting(url, 2)
        tasks.start_soon(Run(url, Sender("lives")).asks, "lives")
        await until_waiting(url, 3)
        for connection in connections:
            await connection.aclose()
        await until_waiting(url, 0)
        server.is_open.set()
    assert server.asked == ["dies", "lives"]
    assert [(account.open, account.in_flight) for account in gateway.accounts()] == [(0, 0), (0, 0)]


async def test_a_server_that_is_down_is_used_again_when_it_is_back() -> None:
    server = opened()
    async with server.there() as upstream:
        pass
    async with gateway_to(upstream) as (gateway, url):
        run = Run(url, Sender("a"))
        with pytest.raises(UnreachableError):
            await run.asks("hello")
        async with server.there(int(upstream.rpartition(":")[2].removesuffix("/v1"))):
            assert await run.asks("hello") == "1"
        assert gateway.stats().in_flight == 0


async def test_pages_in_browsers_are_turned_away() -> None:
    server = opened()
    async with server.there() as upstream, gateway_to(upstream) as (_, url), ClientSession() as session:
        body = b'{"model": "m", "messages": [{"role": "user", "content": "a"}]}'
        async with session.post(f"{url}/chat/completions", data=body, headers={"Origin": "http://x"}) as response:
            assert response.status == 403
    assert server.asked == []
