"""What a call costs in CPU time: over the plain libraries, over our client, and through the whole engine."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

import aiohttp
import anyio
from httpx2 import Limits
from openai import AsyncOpenAI, DefaultAioHttpClient

from bench.overhead.instant_server import MODEL
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport
from flowevolve.policies.ordering import LaterFirst
from flowevolve.runner.run import run

SYSTEM, ASKED = "Answer well.", "What is the answer to question {}?"
"""The messages of every call here; the engine's calls have other instructions."""

SECONDS = 600.0
"""The time limit of a call over the SDK, whose own default of 5 s for a connection is too short on a busy machine."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of ``calls`` calls. ``cpu_ms`` is this process's CPU time per call, all its threads together."""

    calls: int
    cpu_ms: float
    calls_per_second: float


class Stopwatch:
    """Measures CPU and wall time from its construction on."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def cpu_seconds(self) -> float:
        return time.process_time() - self._cpu

    def cost(self, calls: int) -> Cost:
        return Cost(calls, 1000 * self.cpu_seconds() / calls, calls / (time.perf_counter() - self._wall))


Measure = Callable[[str, int, int], Awaitable[Cost]]
"""Makes calls to a base URL, and measures them. It takes the URL, the number of calls and how many at a time."""


async def plain_aiohttp(url: str, calls: int, in_flight: int) -> Cost:
    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def call(number: int) -> None:
            async with session.post(url + "/chat/completions", json=_body(number)) as response:
                (await response.json())["choices"][0]["message"]["content"]

        return await _timed(call, calls, in_flight)


async def plain_sdk(url: str, calls: int, in_flight: int) -> Cost:
    limits = Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    http = DefaultAioHttpClient(limits=limits)
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=SECONDS, http_client=http) as client:

        async def call(number: int) -> None:
            body = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASKED.format(number)}]
            reply = await client.chat.completions.create(model=MODEL, messages=body)  # type: ignore[arg-type]  # plain dicts
            assert reply.choices[0].message.content

        return await _timed(call, calls, in_flight)


async def our_client(url: str, calls: int, in_flight: int) -> Cost:
    return await _client(AioHTTPTransport(url, None, max_connections=in_flight), calls, in_flight)


async def our_client_over_sdk(url: str, calls: int, in_flight: int) -> Cost:
    return await _client(OpenAITransport(url, None, max_connections=in_flight), calls, in_flight)


VALIDATION = 64
"""Validation examples of the engine's runs."""


async def engine(url: str, calls: int, in_flight: int) -> Cost:
    """The real GEPA on a trivial task, with its run directory. It makes about ``calls`` calls."""
    with tempfile.TemporaryDirectory() as folder:
        return await _engine(url, calls, in_flight, Path(folder) / "run")


async def engine_without_directory(url: str, calls: int, in_flight: int) -> Cost:
    return await _engine(url, calls, in_flight, None)


async def _engine(url: str, calls: int, in_flight: int, out: Path | None) -> Cost:
    config = parse_config(
        {
            "preset": "plain",
            "algorithm": {"max_in_flight": max(2, in_flight // 8)},
            "llm": {
                "backend": "openai",
                "transport": "aiohttp",
                "base_url": url,
                "model": MODEL,
                "concurrency": in_flight,
            },
            "stages": {name: {"workers": 32} for name in ("generate", "propose", "screen", "evaluate")},
            "budget": {"rollouts": max(calls, 3 * VALIDATION)},
        },
        "bench",
    )
    watch = Stopwatch()
    result = await run(config, task=Trivial(validation=VALIDATION), out=out)
    return watch.cost(result.llm.requests)


async def memory(url: str, calls: int) -> tuple[float, float]:
    """The peak memory of this process in MB, before any call and with this many calls of the engine (the validation of
    a seed) in flight at once.
    """
    before = peak_mb()
    config = {"backend": "openai", "transport": "aiohttp", "base_url": url, "model": MODEL, "concurrency": calls}
    await run(
        parse_config({"preset": "plain", "llm": config, "budget": {"rollouts": calls}}, "bench"),
        task=Trivial(validation=calls),
    )
    return before, peak_mb()


def peak_mb() -> float:
    """The peak memory of this process in MB. Linux has a better source than `getrusage`, whose figure a child inherits
    from its parent there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


class Trivial:
    """A task that costs almost nothing itself: a rollout is one call, its score a hash of instruction and example."""

    name = "trivial"
    description: ClassVar[str] = "questions that any answer will do for"

    def __init__(self, validation: int) -> None:
        self.data = Dataset(examples("t", 64), examples("v", validation))

    def seed(self) -> Artifact:
        return Artifact({"instruction": SYSTEM})

    async def rollout(self, artifact: Artifact, example: Example, model: ChatModel) -> Rollout:
        instruction, asked = artifact["instruction"], str(example.data["question"])
        output = await model([Message("system", instruction), Message("user", asked)])
        value = blake2b(f"{instruction}/{example.id}".encode(), digest_size=1).digest()[0] / 255
        score = Score(value, "it could be better", passed=False)
        return Rollout(example.id, output, score, (Call("instruction", {"question": asked}, output),))


def examples(prefix: str, count: int) -> list[Example]:
    return [Example(f"{prefix}{number}", {"question": ASKED.format(number)}) for number in range(count)]


async def _client(transport: AioHTTPTransport | OpenAITransport, calls: int, in_flight: int) -> Cost:
    def observe(record: CallRecord) -> None:
        """Calls are not recorded here."""

    client = LLMClient({"task": Model(transport, MODEL)}, Scheduler(in_flight, LaterFirst()), RetryPolicy(), 0, observe)

    async def call(number: int) -> None:
        messages = (Message("system", SYSTEM), Message("user", ASKED.format(number)))
        await client.chat("task", messages, scope=CallScope("stage", f"{number}", "candidate", 0, 0))

    try:
        return await _timed(call, calls, in_flight)
    finally:
        await transport.aclose()


async def _timed(call: Callable[[int], Awaitable[None]], calls: int, in_flight: int) -> Cost:
    """The cost of the calls, measured once connections are open."""
    await _side_by_side(call, in_flight, in_flight)
    watch = Stopwatch()
    await _side_by_side(call, calls, in_flight)
    return watch.cost(calls)


async def _side_by_side(call: Callable[[int], Awaitable[None]], calls: int, in_flight: int) -> None:
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            await call(number)

    async with anyio.create_task_group() as tasks:
        for _ in range(in_flight):
            tasks.start_soon(work)


def _body(number: int) -> dict[str, object]:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASKED.format(number)}]
    return {"model": MODEL, "messages": messages}
