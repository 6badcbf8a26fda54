"""The probe of vLLM's metrics against the simulated server over HTTP, and against everything else."""

from contextlib import asynccontextmanager

import anyio
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from flowevolve.llm.admission import ServerLoad
from flowevolve.llm.metrics_probe import MetricsProbe, SummedProbe, parse_load
from flowevolve.llm.types import ChatRequest, Message
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES, BatchingProfile, OutputLength
from flowevolve.sim.rules import RulesWorld
from flowevolve.sim.rules_params import PRESETS
from flowevolve.sim.server import serve

pytestmark = pytest.mark.anyio

SLOW = BatchingProfile(OutputLength(0, 0, 10), 1000.0, 0.0, 0.0, max_num_seqs=2, cache_blocks=10)

# Two engines, as vLLM writes them (without its other families).
VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen3-8B"} 40.0
vllm:num_requests_running{engine="1",model_name="Qwen/Qwen3-8B"} 2.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-8B"} 7.0
vllm:num_requests_waiting{engine="1",model_name="Qwen/Qwen3-8B"} 0.0
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{reason="capacity"} 7.0
# TYPE vllm:prompt_tokens counter
vllm:prompt_tokens_total{engine="0"} 1.0e+06
"""


@asynccontextmanager
async def server(*answers):
    """Answers with each of these statuses and bodies in turn."""
    left = list(answers)

    async def metrics(request):
        status, body = left.pop(0)
        return web.Response(body=body, status=status)

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def test_numbers_are_summed_over_engines() -> None:
    assert parse_load(VLLM) == ServerLoad(42, 7)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>vllm</html>",
        "vllm:num_requests_running 3\n",
        "vllm:num_requests_running{ 3\nvllm:num_requests_waiting",
    ]
    + [VLLM.replace("40.0", value) for value in ("NaN", "+Inf", "x", "")],
)
def test_anything_else_is_no_answer(text) -> None:
    assert parse_load(text) is None


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_no_text_is_an_error(after_running, after_waiting) -> None:
    parse_load(f"vllm:num_requests_running{after_running}\nvllm:num_requests_waiting{after_waiting}")


async def test_the_simulated_server_tells_its_load() -> None:
    backend = SimBackend(RulesWorld(PRESETS["normal"]), SLOW, model="m")
    request = ChatRequest("m", (Message("user", "hello"),))
    async with serve(backend) as url, MetricsProbe(url) as probe, anyio.create_task_group() as tasks:
        assert await probe.load() == await backend.load() == ServerLoad(0, 0)
        for _ in range(5):
            tasks.start_soon(lambda: backend.chat(request, timeout=1e6))
        await anyio.wait_all_tasks_blocked()
        assert await probe.load() == await backend.load() == ServerLoad(2, 3)
        tasks.cancel_scope.cancel()
    async with MetricsProbe(url) as probe:
        assert await probe.load() is None  # the server is gone


async def test_a_simulated_api_or_a_lost_server_tells_nothing() -> None:
    assert await SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["gpt-4o-mini-api"]).load() is None
    lost = SimBackend(RulesWorld(PRESETS["normal"]), SLOW)
    lost.down = True
    assert await lost.load() is None


async def test_a_probe_that_fails_is_no_answer_and_the_next_may_be_one() -> None:
    answers = [(404, b"no"), (500, VLLM.encode()), (200, b"\xff\xfe\x00"), (200, b"a 1\n"), (200, VLLM.encode())]
    async with server(*answers) as url, MetricsProbe(url) as probe:
        assert [await probe.load() for _ in answers] == [None, None, None, None, ServerLoad(42, 7)]


class Says:
    def __init__(self, load) -> None:
        self.said = load

    async def load(self):
        return self.said


async def test_the_load_of_several_servers_is_that_of_those_who_answer() -> None:
    probes = [Says(ServerLoad(3, 1)), Says(None), Says(ServerLoad(4, 0))]
    assert await SummedProbe(probes).load() == ServerLoad(7, 1)
    assert await SummedProbe(probes[1:2]).load() is None
