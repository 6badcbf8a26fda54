"""Our servers are a real vLLM on the CPU here, with a tiny model of random weights. `make test-vllm` runs these.

A start takes half a minute on two idle cores, so one test does many things on one server.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import pytest

from flowevolve.config.run import parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.model import ChatReply, ChatRequest, Message
from flowevolve.llm.scheduling.admission import ServerLoad
from flowevolve.llm.scheduling.metrics_probe import MetricsProbe
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.runner.run import Watchers, run
from flowevolve.vllm.serving import serve_vllm
from flowevolve.vllm.settings import VLLMSettings
from tests.vllm.conftest import KEEP_TRYING, REAL, ROOT, Heard, is_alive, parent

pytestmark = [pytest.mark.anyio, pytest.mark.real_vllm]


def request(text: str, *, tokens: int = 8, seed: int | None = None, priority: int | None = None) -> ChatRequest:
    messages = (Message("user", text),)
    return ChatRequest("tiny", messages, 1.0, tokens, seed, priority=priority, extra={"ignore_eos": True})


def descendants(ancestor: int) -> dict[int, str]:
    """Processes below this one and what they call themselves."""
    found: dict[int, str] = {}
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda folder: int(folder.name)):
        try:
            above = parent(int(folder.name))
            name = (folder / "comm").read_text().strip()
        except OSError:
            continue
        if above == ancestor:
            found |= {int(folder.name): name, **descendants(int(folder.name))}
    return found


def server_of(keeper_parent: int) -> int:
    return next(pid for pid, name in descendants(keeper_parent).items() if name == "vllm")


class Talk:
    """A server to talk to."""

    def __init__(self, transport: AioHTTPTransport, probe: MetricsProbe) -> None:
        self._transport = transport
        self._probe = probe

    async def models(self) -> tuple[str, ...]:
        return await self._transport.models()

    async def say(self, asked: ChatRequest) -> ChatReply:
        return await self._transport.chat(asked, timeout=120.0)

    async def say_all(self, requests: list[ChatRequest]) -> list[int]:
        """Say all at once; returns their indices in the order in which the replies came."""
        order: list[int] = []

        async def one(index: int) -> None:
            await self.say(requests[index])
            order.append(index)

        async with anyio.create_task_group() as tasks:
            for index in range(len(requests)):
                tasks.start_soon(one, index)
        return order

    async def load(self) -> ServerLoad:
        load = await self._probe.load()
        assert load is not None
        return load


@asynccontextmanager
async def talk_to(url: str) -> AsyncIterator[Talk]:
    transport = AioHTTPTransport(url, None, max_connections=64)
    try:
        async with MetricsProbe(lambda: url) as probe:
            yield Talk(transport, probe)
    finally:
        await transport.aclose()


async def check_chat_and_seeds(talk: Talk) -> None:
    assert await talk.models() == ("tiny",)
    first = await talk.say(request("import os", seed=5))
    again = await talk.say(request("import os", seed=5))
    other = await talk.say(request("import os", seed=6))
    assert first.usage.completion_tokens == 8
    assert first.text == again.text != other.text
    # Long prompts side by side: were they prefilled in parts, the server would die of their seeds.
    await talk.say_all([request(f"{index} " + "return self.path " * 200, seed=index) for index in range(24)])


async def check_prefix_cache(talk: Talk) -> None:
    prefix = "def answer(question): return the best of all answers " * 10
    before = await talk.load()
    replies = [await talk.say(request(f"{prefix}{index}")) for index in range(4)]
    after = await talk.load()
    assert [reply.usage.cached_tokens > 100 for reply in replies] == [False, True, True, True]
    assert before.prefix_hits is not None
    assert after.prefix_hits is not None
    assert after.prefix_hits - before.prefix_hits >= sum(reply.usage.cached_tokens for reply in replies)
    assert after.cache_usage is not None


async def check_priorities(talk: Talk, url: str) -> None:
    """Of many that wait, the one with the lowest number goes before most, though it came last.

    The server is held while they come, or a quick one would have answered the first before the last are sent. Nothing
    says when it has read the last one (a held server counts nothing), so some waves of four may go before that one; in
    the order of arrival it would be the last of 33.
    """
    order: list[str] = []

    async def say(name: str, priority: int) -> None:
        await talk.say(request(f"class {name}", tokens=50, priority=priority))
        order.append(name)

    async def let_arrive() -> None:
        for _ in range(50):
            await talk.models()

    base = url.removesuffix("/v1")
    async with aiohttp.ClientSession(base, raise_for_status=True) as server, anyio.create_task_group() as tasks:
        await server.post("/pause", params={"mode": "keep"})
        for index in range(32):
            tasks.start_soon(say, f"late{index}", 1000)
        await let_arrive()
        tasks.start_soon(say, "urgent", 0)
        await let_arrive()
        await server.post("/resume")
    assert order.index("urgent") < 16


async def test_a_real_server_does_what_a_run_asks_of_it(tmp_path: Path) -> None:
    heard = Heard()
    settings = VLLMSettings.model_validate(REAL)
    async with serve_vllm("tiny", settings, log=tmp_path / "vllm.log", on_event=heard.tell) as urls:
        async with talk_to(urls[0]) as talk:
            await check_chat_and_seeds(talk)
            await check_prefix_cache(talk)
            await check_priorities(talk, urls[0])
            started = descendants(os.getpid())
            core = next(pid for pid, name in started.items() if name.startswith("VLLM::Engine"))
            os.kill(core, signal.SIGKILL)  # the one that computes: the one that listens must not go on without it
            await heard.until("healthy", "died", "healthy")
            assert await talk.models() == ("tiny",)
        started |= descendants(os.getpid())
    assert len(started) > 6
    assert [name for pid, name in started.items() if is_alive(pid)] == []


async def test_a_run_goes_on_after_its_server_was_killed(tmp_path: Path) -> None:
    calls: list[CallRecord] = []
    killed: list[int] = []

    def observe(record: CallRecord) -> None:
        calls.append(record)
        if len(calls) == 30:
            killed.append(server_of(os.getpid()))
            os.kill(killed[0], signal.SIGKILL)

    config = parse_config(
        {
            "llm": {"backend": "vllm", "model": "tiny", "max_tokens": 16, "concurrency": 8},
            "vllm": REAL,
            "scheduler": {"admission": {"policy": "server_queue", "interval_seconds": 0.5}},
            "stopping": KEEP_TRYING,
            "budget": {"rollouts": 150},
        },
        "test",
    )
    out = tmp_path / "out"
    result = await run(config, out=out, watchers=Watchers(calls=(observe,)))
    assert killed
    assert result.report.stop_reason == "rollouts"
    assert result.report.error is None
    assert result.llm.failed == 0
    assert result.llm.retries >= 1
    server = json.loads((out / "result.json").read_text())["server"]
    assert server["restarts"] == 1
    assert server["looks"] > 0
    assert server["prefix_hit_rate"] > 0
    assert "Application startup complete" in (out / "vllm.log").read_text()
    assert descendants(os.getpid()) == {}


def test_no_process_outlives_a_killed_supervisor(tmp_path: Path, wait_for_death: Callable[[int], None]) -> None:
    command = [sys.executable, "-c", "from flowevolve.cli.app import main; main()", "serve", str(REAL["model"])]
    command += ["--executable", str(REAL["executable"]), "--port", "0", "--", "--enforce-eager"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if "Ctrl-C" in line)
        started = descendants(process.pid)
        process.kill()
        process.wait(30)
    assert len(started) > 3
    for pid in started:
        wait_for_death(pid)
