"""Programs on a real Ray cluster, whose nodes, actors and engine are killed while they run."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from ray._private.node import Node
from ray.cluster_utils import Cluster
from structlog.testing import capture_logs

from flowevolve._util.errors import InputError
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox import Sandbox
from flowevolve.sandbox.evaluators import Evaluators
from flowevolve.sandbox.nodes.leases import LeasedEvaluators
from flowevolve.sandbox.opening import open_evaluators
from tests.sandbox.conftest import left_over
from tests.support.evaluators_conformance import EvaluatorsConformance
from tests.support.hostile import PROGRAMS, Hostile
from tests.support.on_clusters import (
    RESULTS,
    SETTINGS,
    flowevolve,
    go_on,
    kept,
    kill_half_way,
    pids,
    slow_programs,
    until,
    write_run,
)
from tests.support.ray_cluster import add_node, cluster, kill_node

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Cluster]:
    with cluster(nodes=2) as made:
        yield made


@pytest.fixture
def other_cluster() -> Iterator[Cluster]:
    with cluster(nodes=1) as made:
        yield made


def on(made: Cluster, settings: SandboxSettings = SETTINGS) -> SandboxSettings:
    return settings.model_copy(update={"on": "ray", "address": made.address})


def opened(made: Cluster) -> LeasedEvaluators:
    evaluators = open_evaluators(on(made))
    assert isinstance(evaluators, LeasedEvaluators)
    return evaluators


class TestRay(EvaluatorsConformance):
    @pytest.fixture(autouse=True)
    def _cluster(self, ray_cluster: Cluster) -> None:
        self.cluster = ray_cluster

    def evaluators(self, settings: SandboxSettings) -> Evaluators:
        return open_evaluators(on(self.cluster, settings))


async def test_what_a_killed_node_had_runs_elsewhere_and_a_new_node_is_used(ray_cluster: Cluster) -> None:
    async with opened(ray_cluster) as evaluators:
        async with slow_programs(evaluators, 5):
            node: Node = next(iter(ray_cluster.worker_nodes))
            await anyio.to_thread.run_sync(kill_node, ray_cluster, node)
            await until(lambda: evaluators.capacity == 1)
            await anyio.to_thread.run_sync(add_node, ray_cluster)
        await until(lambda: evaluators.capacity == 2)
        assert evaluators.counts.lost_nodes == 1
        assert evaluators.counts.leased_again >= 1


async def test_a_killed_actor_is_replaced(ray_cluster: Cluster) -> None:
    async with opened(ray_cluster) as evaluators:
        async with slow_programs(evaluators, 4):
            os.kill(pids("ray::NodeHost")[0], signal.SIGKILL)
        assert evaluators.counts.lost_nodes == 1
        await until(lambda: evaluators.capacity == 2)


async def test_a_second_run_waits_for_nodes_that_are_in_use_and_says_so(ray_cluster: Cluster) -> None:
    told, waits = list[str](), anyio.Event()

    def tell(line: str) -> None:
        told.append(line)
        waits.set()

    async def second() -> None:
        async with open_evaluators(on(ray_cluster), tell) as evaluators:
            assert evaluators.capacity >= 1

    async with anyio.create_task_group() as tasks, opened(ray_cluster):
        tasks.start_soon(second)
        await waits.wait()
    said, joined = told
    assert said.startswith(f"Ray cluster {ray_cluster.address}: node ")
    assert said.count(" is in use by another run") == 2
    assert ": the wait is over; slots for programs: " in joined


async def test_of_a_node_that_dies_in_mid_run_one_line_is_said_and_no_log_of_ray(
    other_cluster: Cluster, tmp_path: Path
) -> None:
    write_run(tmp_path, 'on = "ray"')
    await anyio.to_thread.run_sync(add_node, other_cluster)
    run = flowevolve(tmp_path, "run", "config.toml", "--out", "run", environment={"RAY_ADDRESS": other_cluster.address})
    try:
        await until(lambda: len(kept(tmp_path)) >= 4 or run.poll() is not None)
        await anyio.to_thread.run_sync(kill_node, other_cluster, next(iter(other_cluster.worker_nodes)))
        await until(lambda: run.poll() is not None)
    finally:
        run.kill()
        run.wait()
    said = (tmp_path / "output").read_text()
    assert run.returncode == 0, said
    assert re.findall(r"node \w{8} is lost: .*; slots left: 1", said)
    assert "state-dump" not in said
    assert "(raylet)" not in said


async def test_a_node_without_bubblewrap_is_refused_by_name(ray_cluster: Cluster) -> None:
    node = await anyio.to_thread.run_sync(add_node, ray_cluster, {"PATH": "/nowhere"})
    try:
        with capture_logs() as logs:
            async with opened(ray_cluster) as evaluators:
                assert evaluators.capacity == 2
        (refused,) = (log["why"] for log in logs if log["event"] == "evaluators.node_refused")
        assert node.unique_id[:8] in refused
        assert "bubblewrap (bwrap) is not installed" in refused
    finally:
        await anyio.to_thread.run_sync(kill_node, ray_cluster, node)


async def test_nodes_whose_folders_are_others_are_refused(
    ray_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chmod(tmp_path, 0o755)  # noqa: PTH101 - programs run as another user
    monkeypatch.setattr("flowevolve.sandbox.nodes.ray.fingerprint", lambda folders: "of other files")
    settings = on(ray_cluster, SETTINGS.model_copy(update={"readable": (tmp_path,)}))
    with pytest.raises(InputError, match=rf"what programs may read \({tmp_path}\) is not the same there"):
        async with open_evaluators(settings):
            pass


async def test_hostile_programs_leave_nothing_on_a_node(ray_cluster: Cluster) -> None:
    wanted = {"fork bomb", "daemon", "setsid in the shell", "kills everybody", "kills its supervisor", "zombies"}
    programs = [each for each in PROGRAMS if each.name in wanted]
    assert len(programs) == len(wanted)
    async with opened(ray_cluster) as evaluators:
        sandbox = Sandbox(SETTINGS, evaluators)

        async def one(hostile: Hostile) -> None:
            outcome = await sandbox.run(hostile.source, timeout=hostile.timeout, command=hostile.command)
            assert outcome.status in hostile.statuses, hostile.name

        async with anyio.create_task_group() as tasks:
            for hostile in programs:
                tasks.start_soon(one, hostile)
        assert left_over() == []
        good = await sandbox.run("def f(): return [1]", call="f")
        assert good.result == [1]
        assert evaluators.counts.lost_nodes == 0


async def test_where_there_is_no_cluster_it_is_said() -> None:
    settings = SETTINGS.model_copy(update={"on": "ray", "address": "127.0.0.1:1"})
    with pytest.raises(InputError, match=r"sandbox.address: there is no Ray cluster at '127.0.0.1:1'"):
        async with open_evaluators(settings):
            pass


@pytest.mark.parametrize(
    ("address", "variable", "said"),
    [
        ("10.0.0.1", None, "sandbox.address: '10.0.0.1' is no HOST:PORT; give the address"),
        ("ray://10.0.0.1:10001", None, "sandbox.address: 'ray://10.0.0.1:10001' is an address for Ray Client"),
        ("auto", "127.0.0.1:1", "the environment variable RAY_ADDRESS: there is no Ray cluster at '127.0.0.1:1'"),
    ],
)
async def test_an_address_that_is_none_is_refused_by_where_it_was_given(
    address: str, variable: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if variable is not None:
        monkeypatch.setenv("RAY_ADDRESS", variable)
    settings = SETTINGS.model_copy(update={"on": "ray", "address": address})
    with pytest.raises(InputError, match=re.escape(said)):
        async with open_evaluators(settings):
            pass


async def test_a_run_that_is_asked_to_end_is_not_ended_by_ray(ray_cluster: Cluster, tmp_path: Path) -> None:
    write_run(tmp_path, 'on = "ray"')
    run = flowevolve(tmp_path, "run", "config.toml", "--out", "run", environment={"RAY_ADDRESS": ray_cluster.address})
    try:
        await until(lambda: len(kept(tmp_path)) >= 5 or run.poll() is not None)
        run.send_signal(signal.SIGTERM)
        await until(lambda: run.poll() is not None)
    finally:
        run.kill()
        run.wait()
    said = (tmp_path / "output").read_text()
    assert run.returncode == 130, said
    assert "SIGTERM received" not in said


async def test_a_run_whose_engine_was_killed_goes_on_with_another_cluster(
    ray_cluster: Cluster, other_cluster: Cluster, tmp_path: Path
) -> None:
    write_run(tmp_path, 'on = "ray"')
    before = await kill_half_way(tmp_path, {"RAY_ADDRESS": ray_cluster.address})
    await until(lambda: pids("ray::NodeHost") == [])  # which end with the engine
    after = await go_on(tmp_path, environment={"RAY_ADDRESS": other_cluster.address})
    assert after[: len(before)] == before
    assert len(after) == len(set(after)) == RESULTS
