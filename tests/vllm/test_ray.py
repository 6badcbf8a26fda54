"""Replicas on a real Ray cluster, whose nodes, actors and servers are killed while they serve."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
import tomli_w
from ray.cluster_utils import Cluster

from flowevolve._util.errors import BackendUnreachableError, InputError
from flowevolve._util.tasks import Pulse
from flowevolve.config.run import parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.model import ChatRequest, Message, RefusedError
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.engine.engine import Engine
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.runner.check import check
from flowevolve.runner.run import Watchers, run
from flowevolve.sandbox import Sandbox
from flowevolve.sandbox.opening import open_evaluators
from flowevolve.vllm.serving import check_vllm, serve_vllm
from flowevolve.vllm.settings import VLLMSettings
from tests.support.ray_cluster import add_node, cluster, kill_node
from tests.vllm.conftest import KEEP_TRYING, REAL, ROOT, FakeVLLM, Heard, parent

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")]

REQUEST = ChatRequest("m", (Message("user", "hello"),), max_tokens=5)
KEY = "a-key-that-was-drawn-for-this-test"


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Cluster]:
    with cluster(nodes=2) as made:
        yield made


def on(made: Cluster, fake: FakeVLLM, *fates: str, **settings: object) -> dict[str, object]:
    return {
        **fake.settings(*fates),
        "on": "ray",
        "address": made.address,
        "replicas": 2,
        "startup_seconds": 120,
        **settings,
    }


@asynccontextmanager
async def serving(
    made: Cluster, fake: FakeVLLM, *fates: str, heard: Heard | None = None, **settings: object
) -> AsyncIterator[list[str]]:
    checked = VLLMSettings.model_validate(on(made, fake, *fates, **settings))
    log = fake.folder / "vllm.log"
    async with serve_vllm("m", checked, log=log, on_event=(heard or Heard()).tell, api_key=KEY) as urls:
        yield urls


async def reply(url: str, key: str | None = KEY) -> str:
    transport = AioHTTPTransport(url, key, max_connections=1)
    try:
        return (await transport.chat(REQUEST, timeout=30.0)).model
    finally:
        await transport.aclose()


def actor_of(pid: int) -> int:
    """The actor above a server and its keeper."""
    while not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::"):
        pid = parent(pid)
    return pid


class Answers:
    """The calls of a run that have come to an end."""

    def __init__(self) -> None:
        self._calls = 0
        self._pulse = Pulse()

    def count(self, record: CallRecord) -> None:
        self._calls += 1
        self._pulse.fire()

    async def more(self, number: int) -> None:
        """Wait until so many more have."""
        until = self._calls + number
        while self._calls < until:
            await self._pulse.wait()


async def until_dead(fake: FakeVLLM) -> None:
    with anyio.fail_after(60):
        while fake.alive():  # noqa: ASYNC110 - processes of others don't tell of their end
            await anyio.sleep(0.05)


async def test_replicas_are_spread_over_nodes_and_answer_those_who_have_the_key(
    ray_cluster: Cluster, fake: FakeVLLM
) -> None:
    heard = Heard()
    async with serving(ray_cluster, fake, heard=heard) as urls:
        assert [await reply(url) for url in urls] == ["m", "m"]
        assert all(url.startswith("http://127.0.0.1:") for url in urls)  # the nodes' address in this cluster
        for key in (None, "another"):
            with pytest.raises(RefusedError, match="401"):
                await reply(urls[0], key)
        starts = fake.starts()
        assert len({start.environment["RAY_RAYLET_PID"] for start in starts}) == 2
        assert not any(KEY in argument for start in starts for argument in start.arguments)
    assert heard.kinds() == ["healthy", "healthy"]
    assert fake.alive() == []


@pytest.mark.parametrize("victim", ["server", "actor"])
async def test_one_that_is_killed_is_back_and_says_where(ray_cluster: Cluster, fake: FakeVLLM, victim: str) -> None:
    heard = Heard()
    async with serving(ray_cluster, fake, heard=heard) as urls:
        server = fake.starts()[0].pids[0]
        os.kill(server if victim == "server" else actor_of(server), signal.SIGKILL)
        await heard.until("healthy", "healthy", "died", "healthy")
        died, healthy = heard.server_changes[2:]
        assert died.url in urls
        assert "restart 1 of 3" in died.detail
        assert ("was killed by SIGKILL" if victim == "server" else "its actor was lost") in died.detail
        assert healthy.moved_from == died.url
        assert await reply(healthy.url) == "m"
        assert len(fake.alive()) == 4
    assert fake.alive() == []


async def test_one_that_can_not_be_started_is_an_error_that_names_its_node(
    ray_cluster: Cluster, fake: FakeVLLM, tmp_path: Path
) -> None:
    with pytest.raises(BackendUnreachableError, match=r"node 127\.0\.0\.1 \(\w{8}\): vLLM .*ValueError: no such model"):
        async with serving(ray_cluster, fake, "serve", "die"):
            raise AssertionError("it is not up")
    with pytest.raises(InputError, match=r"node 127\.0\.0\.1 \(\w{8}\): vllm\.executable: there is no command"):
        async with serving(ray_cluster, fake, executable=str(tmp_path / "nowhere" / "vllm")):
            raise AssertionError("it is not up")
    await until_dead(fake)


async def test_programs_and_replicas_may_be_on_one_cluster(ray_cluster: Cluster, fake: FakeVLLM) -> None:
    settings = SandboxSettings(on="ray", address=ray_cluster.address, timeout=100, preload=())
    async with open_evaluators(settings) as evaluators:
        async with serving(ray_cluster, fake) as urls:
            assert await reply(urls[0]) == "m"
        outcome = await Sandbox(settings, evaluators).run("def f(): return [1]", call="f")
        assert outcome.result == [1]


async def test_check_says_what_is_wrong_with_the_cluster(ray_cluster: Cluster, fake: FakeVLLM) -> None:
    def settings(**given: object) -> VLLMSettings:
        return VLLMSettings.model_validate(on(ray_cluster, fake, **given))

    await check_vllm(settings())
    with pytest.raises(InputError, match=r"vllm\.address: there is no Ray cluster at '127\.0\.0\.1:1'"):
        await check_vllm(settings(address="127.0.0.1:1"))
    with pytest.raises(InputError, match=r"vllm\.replicas: the Ray cluster has no room for 3 of 1 CPU each .*has 1,"):
        await check_vllm(settings(replicas=3))
    with pytest.raises(InputError, match=r"no room for 2 of 4 GPU each .*has 0.*vllm\.gpus"):
        await check_vllm(settings(device="auto", flags=("--tensor-parallel-size=4",)))
    assert fake.starts() == []


def table(made: Cluster, fake: FakeVLLM, **budget: object) -> dict[str, object]:
    return {
        "llm": {"backend": "vllm", "model": "m", "concurrency": 4},
        "vllm": on(made, fake),
        "scheduler": {"admission": {"interval_seconds": 0.5}},
        "budget": budget,
    }


async def test_a_run_goes_on_without_a_node_and_uses_the_one_that_comes_in_its_place(
    ray_cluster: Cluster, fake: FakeVLLM, tmp_path: Path
) -> None:
    config = parse_config(table(ray_cluster, fake, hours=1), "test")
    await check(config)
    heard, answers = Heard(), Answers()

    async def lose_a_node(engine: Engine) -> None:
        with anyio.fail_after(180):
            await answers.more(40)
            node = next(iter(ray_cluster.worker_nodes))
            await anyio.to_thread.run_sync(kill_node, ray_cluster, node)
            await answers.more(40)
            await anyio.to_thread.run_sync(add_node, ray_cluster)
            while heard.kinds().count("healthy") < 3:
                await heard.pulse.wait()
            await answers.more(40)
            engine.stop()

    out = tmp_path / "out"
    result = await run(
        config, out=out, watchers=Watchers(calls=(answers.count,), servers=(heard.tell,)), side_task=lose_a_node
    )
    assert result.report.stop_reason == "stopped"
    assert result.server is not None
    assert result.server.restarts == heard.kinds().count("died") >= 1
    assert result.llm.failed == 0
    died, healthy = heard.server_changes[2], heard.server_changes[-1]
    requests = {endpoint.url: endpoint for endpoint in result.traffic.endpoints}
    assert set(requests) == {died.url, healthy.url, *(each.url for each in heard.server_changes)}
    assert len(requests) == 3
    assert all(endpoint.requests > endpoint.failures for endpoint in requests.values())
    answered_requests = sum(endpoint.requests - endpoint.failures for endpoint in requests.values())
    with sqlite3.connect(out / "journal.sqlite") as journal:
        work = journal.execute("SELECT stage, item, idx FROM calls").fetchall()
        lost = journal.execute("SELECT COUNT(*) FROM calls WHERE reply IS NULL").fetchone()
    assert lost == (0,)
    assert len(work) == len(set(work)) == result.llm.requests
    assert answered_requests == result.llm.requests + result.cancelled
    assert fake.alive() == []


def test_a_run_that_is_killed_leaves_no_server_on_a_node(
    ray_cluster: Cluster, fake: FakeVLLM, tmp_path: Path, wait_for_death: Callable[[int], None]
) -> None:
    (tmp_path / "run.toml").write_text(tomli_w.dumps(table(ray_cluster, fake, hours=1)))
    command = [sys.executable, "-m", "flowevolve", "run", "run.toml", "--out", "out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if "best" in line)
        assert len(fake.alive()) == 4
        process.kill()
    for pid in fake.processes():
        wait_for_death(pid)


def server_at(url: str) -> int:
    """The process of the server at an address."""
    port = url.rpartition(":")[2].partition("/")[0].encode()
    commands = {path.parent: path.read_bytes().split(b"\0") for path in Path("/proc").glob("[0-9]*/cmdline")}
    started = [folder for folder, command in commands.items() if {b"--port", port} <= {*command}]  # its keeper, too
    (found,) = (int(folder.name) for folder in started if (folder / "comm").read_text().strip() == "vllm")
    return found


@pytest.mark.real_vllm
async def test_a_run_on_replicas_of_a_real_vllm_goes_on_after_one_was_killed(
    ray_cluster: Cluster, tmp_path: Path
) -> None:
    """`make test-vllm` runs this, in the environment of `make test-ray`."""
    heard, answers = Heard(), Answers()

    async def lose_a_server(engine: Engine) -> None:
        with anyio.fail_after(300):
            await answers.more(30)
            os.kill(server_at(heard.server_changes[0].url), signal.SIGKILL)
            while "died" not in heard.kinds():
                await heard.pulse.wait()
            await answers.more(30)
            engine.stop()

    config = parse_config(
        {
            "llm": {"backend": "vllm", "model": "tiny", "max_tokens": 16, "concurrency": 8},
            "vllm": {**REAL, "on": "ray", "address": ray_cluster.address, "replicas": 2},
            "stopping": KEEP_TRYING,
            "budget": {"hours": 1},
        },
        "test",
    )
    await check(config)
    watchers = Watchers(calls=(answers.count,), servers=(heard.tell,))
    result = await run(config, out=tmp_path / "out", watchers=watchers, side_task=lose_a_server)
    assert heard.kinds()[:3] == ["healthy", "healthy", "died"]
    assert result.report.stop_reason == "stopped"
    assert result.llm.failed == 0
    # A server that has come in place of the killed one may have been asked nothing before the run was stopped.
    answered_requests = sum(endpoint.requests - endpoint.failures for endpoint in result.traffic.endpoints)
    assert answered_requests == result.llm.requests + result.cancelled
