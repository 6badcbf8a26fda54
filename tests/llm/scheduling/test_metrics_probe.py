"""The probe of vLLM's metrics against the simulated server over HTTP, and against everything else."""

from contextlib import asynccontextmanager

import anyio
import pytest
from aiohttp import web
from hypothesis import given, strategies as st

from flowevolve._util.tasks import Pulse
from flowevolve.core.model import ChatRequest, Message
from flowevolve.llm.scheduling.admission import ServerLoad
from flowevolve.llm.scheduling.metrics_probe import MetricsProbe, SummedProbe, parse_load
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES, BatchingProfile, OutputLength
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

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

    async with serving(metrics) as url:
        yield url


@asynccontextmanager
async def serving(metrics):
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


def test_cache_usage_is_a_mean_and_its_hits_are_summed() -> None:
    caches = """vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:kv_cache_usage_perc{engine="1"} 0.25
vllm:prefix_cache_queries_total{engine="0"} 1000.0
vllm:prefix_cache_queries_total{engine="1"} 200.0
vllm:prefix_cache_queries_created{engine="0"} 1.7e+09
vllm:prefix_cache_hits_total{engine="0"} 900.0
vllm:prefix_cache_hits_total{engine="1"} 0.0
"""
    load = parse_load(VLLM + caches)
    assert load == ServerLoad(42, 7, 0.375, 1200.0, 900.0)
    assert load.prefix_hit_rate == 0.75
    assert parse_load(VLLM + caches.replace("0.25", "NaN")) == ServerLoad(42, 7, None, 1200.0, 900.0)
    assert ServerLoad(0, 0, 0.0, 0.0, 0.0).prefix_hit_rate is None


@pytest.mark.parametrize(
    ("blocks", "kept", "tokens"),
    [("4096", "True", 65_536), ("4096", "False", 0), ("None", "True", None), ("0", "True", 0)],
)
def test_the_configuration_tells_how_much_a_prefix_cache_holds(blocks: str, kept: str, tokens: int | None) -> None:
    told = f'vllm:cache_config_info{{block_size="16",enable_prefix_caching="{kept}",num_gpu_blocks="{blocks}"}} 1.0\n'
    load = parse_load(VLLM + told)
    assert load is not None
    assert load.cache_tokens == tokens


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
    async with serve(backend) as url, MetricsProbe(lambda: url) as probe, anyio.create_task_group() as tasks:
        assert await probe.load() == await backend.load() == ServerLoad(0, 0, None, 0, 0, 160)
        for _ in range(5):
            tasks.start_soon(lambda: backend.chat(request, timeout=1e6))
        await anyio.wait_all_tasks_blocked()
        load = await probe.load()
        assert load == await backend.load()
        assert load is not None
        assert (load.running, load.waiting) == (2, 3)
        tasks.cancel_scope.cancel()
    async with MetricsProbe(lambda: url) as probe:
        assert await probe.load() is None  # the server is gone


async def test_a_simulated_api_or_a_lost_server_tells_nothing() -> None:
    assert await SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["gpt-4o-mini-api"]).load() is None
    lost = SimBackend(RulesWorld(PRESETS["normal"]), SLOW)
    lost.down = True
    assert await lost.load() is None


async def test_a_probe_that_fails_is_no_answer_and_the_next_may_be_one() -> None:
    answers = [(404, b"no"), (500, VLLM.encode()), (200, b"\xff\xfe\x00"), (200, b"a 1\n"), (200, VLLM.encode())]
    async with server(*answers) as url, MetricsProbe(lambda: url) as probe:
        assert [await probe.load() for _ in answers] == [None, None, None, None, ServerLoad(42, 7)]


class Says:
    """These answers in turn, the last for ever."""

    def __init__(self, *answers: ServerLoad | None) -> None:
        self._answers = list(answers)

    async def load(self) -> ServerLoad | None:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


async def test_the_load_of_several_servers_is_that_of_those_who_answer() -> None:
    probes = [Says(ServerLoad(3, 1)), Says(None), Says(ServerLoad(4, 0))]
    assert await SummedProbe(probes).load() == ServerLoad(7, 1)
    assert await SummedProbe(probes[1:2]).load() is None


async def test_what_prefix_caches_tell_is_added_up_over_restarts_and_silence() -> None:
    first = Says(ServerLoad(1, 0, 0.5, 100, 10), ServerLoad(1, 0, 0.5, 40, 4), ServerLoad(1, 0, 0.5, 50, 5))
    second = Says(ServerLoad(1, 0, 0.25, 200, 20), None, ServerLoad(1, 0, 0.25, 210, 21))
    probe = SummedProbe([first, second])
    assert await probe.load() == ServerLoad(2, 0, 0.375, 300, 30)
    assert await probe.load() == ServerLoad(1, 0, 0.5, 340, 34)
    assert await probe.load() == ServerLoad(2, 0, 0.375, 360, 36)


async def test_an_api_without_metrics_is_left_alone_and_nobody_doubts_our_servers_for_it() -> None:
    unanswered, asked = Pulse(), 0

    async def metrics(request):
        nonlocal asked
        asked += 1
        return web.Response(status=404)

    async with (
        serving(metrics) as url,
        MetricsProbe(lambda: url, unanswered) as probe,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(never, unanswered)
        for _ in range(15):
            assert await probe.load() is None
        tasks.cancel_scope.cancel()
    assert asked == 5


async def test_a_server_that_has_told_its_load_is_asked_for_ever() -> None:
    async with server((200, VLLM), *[(404, "")] * 20, (200, VLLM)) as url, MetricsProbe(lambda: url) as probe:
        loads = [await probe.load() for _ in range(22)]
    assert loads == [ServerLoad(42, 7), *[None] * 20, ServerLoad(42, 7)]


async def test_a_server_in_trouble_is_doubted_and_asked_again() -> None:
    unanswered, doubted = Pulse(), 0

    async def doubt() -> None:
        nonlocal doubted
        while True:
            await unanswered.wait()
            doubted += 1

    answers = [*[(503, "")] * 20, (200, VLLM)]
    async with (
        server(*answers) as url,
        MetricsProbe(lambda: url, unanswered) as probe,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(doubt)
        await anyio.wait_all_tasks_blocked()
        assert [await probe.load() for _ in answers] == [*[None] * 20, ServerLoad(42, 7)]
        tasks.cancel_scope.cancel()
    assert doubted > 0


async def never(pulse) -> None:
    await pulse.wait()
    pytest.fail("it was fired")


async def test_of_metrics_without_an_end_only_the_beginning_is_read() -> None:
    async def metrics(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(VLLM.encode())
        while True:
            await response.write(b"vllm:num_requests_running 1\n" * 2000 + b"# \n" * 10**5)

    async with serving(metrics) as url, MetricsProbe(lambda: url) as probe:
        load = await probe.load()
    assert load is not None
    assert load.running <= 42 + 10_000
