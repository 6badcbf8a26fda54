"""The simulated backend as a transport, inside the process and over HTTP, and a run that loses its server."""

from __future__ import annotations

import json
import random
from pathlib import Path

import aiohttp
import anyio
import pytest

from flowevolve._util import clock
from flowevolve._util.errors import BackendUnreachableError
from flowevolve.config.run import parse_config
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    Message,
    OverloadedError,
    RefusedError,
    UnreachableError,
)
from flowevolve.core.task import Dataset
from flowevolve.llm.transports.openai import OpenAITransport
from flowevolve.runner.run import run
from flowevolve.sim.backend import OnWriting, SimBackend
from flowevolve.sim.faults import Faults
from flowevolve.sim.profiles import PROFILES, APIProfile, OutputLength, Profile
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.base import World
from flowevolve.sim.worlds.rules.world import RulesWorld
from flowevolve.tasks.house_style import house_style_task


class Echo:
    """A world that repeats what it was told."""

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        return f"{request.messages[-1].content} {rng.random():.6f}"


def ask(text: str = "hello", **settings: object) -> ChatRequest:
    return ChatRequest(**{"model": "m", "messages": (Message("user", text),), "seed": 1, **settings})  # type: ignore[arg-type]


def backend(profile: Profile = PROFILES["instant"], faults: Faults | None = None) -> SimBackend:
    return SimBackend(Echo(), profile, model="m", faults=faults)


def test_a_reply_depends_on_the_request_alone() -> None:
    async def replies(texts: list[str]) -> dict[str, ChatReply]:
        server = backend(PROFILES["qwen3-8b-h100"])
        found: dict[str, ChatReply] = {}

        async def one(text: str) -> None:
            found[text] = await server.chat(ask(text), timeout=1e6)

        async with anyio.create_task_group() as tasks:
            for text in texts:
                tasks.start_soon(one, text)
        return found

    forwards = clock.run(replies, ["a", "b", "c"], clock="virtual")
    backwards = clock.run(replies, ["c", "b", "a"], clock="virtual")
    assert forwards == backwards
    assert len({reply.text for reply in forwards.values()}) == 3


@pytest.mark.asyncio
async def test_another_seed_gives_another_reply() -> None:
    first, second = [await backend().chat(ask(seed=seed), timeout=60) for seed in (1, 2)]
    assert first.text != second.text


@pytest.mark.asyncio
async def test_max_tokens_cuts_the_text() -> None:
    reply = await backend().chat(ask("word " * 50, max_tokens=5), timeout=60)
    assert reply.finish_reason == "length"
    assert reply.usage.completion_tokens == 5
    assert len(reply.text) <= 20


@pytest.mark.asyncio
async def test_what_goes_wrong_is_an_error_of_its_kind() -> None:
    server = backend()
    with pytest.raises(RefusedError):
        await server.chat(ask(model="other"), timeout=60)
    server.down = True
    with pytest.raises(UnreachableError):
        await server.chat(ask(), timeout=60)
    with pytest.raises(UnreachableError):
        await server.models()


def test_a_time_out_is_unreachable() -> None:
    async def go() -> float:
        with pytest.raises(UnreachableError):
            await backend(PROFILES["qwen3-8b-h100"]).chat(ask("long " * 400), timeout=0.5)
        return anyio.current_time()

    assert clock.run(go, clock="virtual") == pytest.approx(0.5)


@pytest.mark.asyncio
async def test_over_http_the_answer_is_the_same() -> None:
    async with serve(backend()) as url:
        transport = OpenAITransport(url, None, max_connections=4)
        try:
            assert await transport.models() == ("m",)
            reply = await transport.chat(ask(temperature=0.5), timeout=60)
            with pytest.raises(RefusedError):
                await transport.chat(ask(model="other"), timeout=60)
        finally:
            await transport.aclose()
    direct = await backend().chat(ask(temperature=0.5), timeout=60)
    assert (reply.text, reply.usage) == (direct.text, direct.usage)


@pytest.mark.asyncio
async def test_over_http_a_stream_is_the_same_answer() -> None:
    async with serve(backend()) as url:
        transport = OpenAITransport(url, None, max_connections=4)
        try:
            reply = await transport.chat(ask("hello " * 50, stream=True), timeout=60)
            with pytest.raises(RefusedError):
                await transport.chat(ask(model="other", stream=True), timeout=60)
        finally:
            await transport.aclose()
    direct = await backend().chat(ask("hello " * 50), timeout=60)
    assert reply == direct


@pytest.mark.parametrize("name", ["qwen3-8b-h100", "gpt-4o-mini-api"])
def test_a_stream_begins_when_the_writing_does(name: str) -> None:
    async def go() -> tuple[float, float, float]:
        told: list[tuple[float, float]] = []
        await backend(PROFILES[name]).answer(
            ask(), timeout=1e6, on_writing=lambda text, seconds: told.append((anyio.current_time(), seconds))
        )
        ((begun, seconds),) = told
        return begun, seconds, anyio.current_time()

    begun, seconds, ended = clock.run(go, clock="virtual")
    assert 0 <= begun < ended
    assert begun + seconds == pytest.approx(ended)


@pytest.mark.asyncio
async def test_bad_bodies_and_plain_endpoints() -> None:
    async with serve(backend()) as url, aiohttp.ClientSession() as session:
        for body in (
            b"{",
            b"[]",
            b'{"model": "m"}',
            b'{"model": "m", "messages": []}',
            b'{"model": "m", "messages": [{}]}',
        ):
            async with session.post(f"{url}/chat/completions", data=body) as response:
                assert response.status == 400
                assert "message" in (await response.json())["error"]
        root = url.removesuffix("/v1")
        async with session.get(f"{root}/health") as response:
            assert response.status == 200
        async with session.get(f"{root}/metrics") as response:
            text = await response.text()
        assert "vllm:num_requests_running" in text
        assert "vllm:num_requests_waiting{" in text


@pytest.mark.asyncio
async def test_a_rate_limit_reaches_the_client() -> None:
    profile = APIProfile(OutputLength(0, 0, 100), 0.0, 0.0, 0.0, 1.0, float("inf"))
    async with serve(backend(profile)) as url:
        transport = OpenAITransport(url, None, max_connections=4)
        try:
            await transport.chat(ask(), timeout=60)
            with pytest.raises(OverloadedError) as refused:
                await transport.chat(ask(), timeout=60)
        finally:
            await transport.aclose()
    assert refused.value.retry_after == pytest.approx(60, abs=2)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a connection accepted as it closes
def test_a_run_that_loses_its_server_ends_with_what_it_has(tmp_path: Path) -> None:
    """A real server over HTTP, gone in the middle; patience bounds how long the run waits for it."""
    small = house_style_task()
    small.data = Dataset(small.data.train[:12], small.data.val[:6])
    out = tmp_path / "run"

    async def go() -> None:
        server = Mortal(RulesWorld(), PROFILES["instant"], model="m")
        addresses: list[str] = []
        up = anyio.Event()

        async def live() -> None:
            async with serve(server) as url:
                addresses.append(url)
                up.set()
                await server.dead.wait()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(live)
            await up.wait()
            llm = {"backend": "openai", "base_url": addresses[0], "model": "m", "patience_seconds": 0.2}
            await run(parse_config({"llm": llm, "budget": {"minutes": 5}}, "test"), task=small, out=out)

    with pytest.raises(ExceptionGroup) as failed:
        clock.run(go)
    assert failed.group_contains(BackendUnreachableError, match="Start the server again")
    result = json.loads((out / "result.json").read_text())
    assert result["stop_reason"] == "failed"
    assert result["pool_version"] >= 1
    assert result["llm"]["requests"] >= 50


class Mortal(SimBackend):
    """A server that dies after sixty calls."""

    def __init__(self, world: World, profile: Profile, *, model: str) -> None:
        super().__init__(world, profile, model=model)
        self.dead = anyio.Event()
        self._calls = 0

    async def answer(self, request: ChatRequest, *, timeout: float, on_writing: OnWriting | None = None) -> ChatReply:
        self._calls += 1
        if self._calls == 60:
            self.dead.set()
        return await super().answer(request, timeout=timeout, on_writing=on_writing)
