"""Programs on a real Ray cluster, whose nodes, actors and engine are killed while they run."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
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
from tests.support.evaluators_conformance import EvaluatorsConformance, begun, processes_of, unique_name
from tests.support.hostile import PROGRAMS, Hostile
from tests.support.ray_cluster import add_node, cluster, kill_node

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")]

SETTINGS = SandboxSettings(timeout=100, memory_mb=256, preload=())
SLOW = "read x; sleep 3; echo $x"


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


async def until(so: Callable[[], bool]) -> None:
    """Wait for what processes of others do."""
    with anyio.fail_after(120):
        while not so():  # noqa: ASYNC110 - they don't tell of themselves
            await anyio.sleep(0.05)


def pids(of: str) -> list[int]:
    """The processes of this machine whose command line has this in it, but not this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if of.encode() in (folder / "cmdline").read_bytes() and folder.name != str(os.getpid()):
                found.append(int(folder.name))
    return found


class TestRay(EvaluatorsConformance):
    @pytest.fixture(autouse=True)
    def _cluster(self, ray_cluster: Cluster) -> None:
        self.cluster = ray_cluster

    def evaluators(self, settings: SandboxSettings) -> Evaluators:
        return open_evaluators(on(self.cluster, settings))


async def test_what_a_killed_node_had_runs_elsewhere_and_a_new_node_is_used(ray_cluster: Cluster) -> None:
    name, results = unique_name(), list[object]()
    async with opened(ray_cluster) as evaluators:
        sandbox = Sandbox(SETTINGS, evaluators)

        async def one(number: int) -> None:
            results.append((await sandbox.run(SLOW, command=["sh"], name=name, arguments=[number])).result)

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(one, number)
            await begun(name, 2)
            node: Node = next(iter(ray_cluster.worker_nodes))
            await anyio.to_thread.run_sync(kill_node, ray_cluster, node)
            await until(lambda: evaluators.capacity == 1)
            await anyio.to_thread.run_sync(add_node, ray_cluster)
        assert sorted(map(str, results)) == [f"[{number}]" for number in range(5)]
        await until(lambda: evaluators.capacity == 2)
        assert evaluators.counts.lost_nodes == 1
        assert evaluators.counts.leased_again >= 1
    await until(lambda: processes_of(name) == [])


async def test_a_killed_actor_is_replaced(ray_cluster: Cluster) -> None:
    name, results = unique_name(), list[object]()
    async with opened(ray_cluster) as evaluators:
        sandbox = Sandbox(SETTINGS, evaluators)

        async def one(number: int) -> None:
            results.append((await sandbox.run(SLOW, command=["sh"], name=name, arguments=[number])).result)

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(one, number)
            await begun(name, 2)
            os.kill(pids("ray::NodeActor")[0], signal.SIGKILL)
        assert sorted(map(str, results)) == [f"[{number}]" for number in range(4)]
        assert evaluators.counts.lost_nodes == 1
        await until(lambda: evaluators.capacity == 2)
    await until(lambda: processes_of(name) == [])


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


CONFIG = """
seed = 1
[algorithm]
name = "best_of_n"
max_in_flight = 4
[task]
name = "program"
evaluator = "scoring:score"
program = "seed.py"
entry = "solve"
cases = [{n = 1}, {n = 2}, {n = 3}]
[sandbox]
on = "ray"
timeout = 60
preload = []
[llm]
backend = "sim"
[sim]
profile = "instant"

[budget]
evaluations = 8
"""
SEED = "import time\n\n\ndef solve(n):\n    time.sleep(0.5)\n    width = 10\n    return n * width\n"


def _flowevolve(folder: Path, address: str, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "flowevolve", *words]
    environment = {**os.environ, "RAY_ADDRESS": address}
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)


def _kept(folder: Path) -> list[str]:
    """The cases whose rollouts are in the journal, with their candidates."""
    path = folder / "run" / "journal.sqlite"
    if not path.exists():
        return []
    with suppress(sqlite3.OperationalError):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            rows = connection.execute("SELECT json_extract(data, '$.key') FROM events WHERE kind = 'rollout.kept'")
            return [str(key) for (key,) in rows]
        finally:
            connection.close()
    return []


async def test_a_run_whose_engine_was_killed_goes_on_with_another_cluster(
    ray_cluster: Cluster, other_cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(CONFIG)
    (tmp_path / "seed.py").write_text(SEED)
    (tmp_path / "scoring.py").write_text("def score(result, arguments):\n    return float(result)\n")
    first = _flowevolve(tmp_path, ray_cluster.address, "run", "config.toml", "--out", "run")
    try:
        await until(lambda: len(_kept(tmp_path)) >= 5 or first.poll() is not None)
        assert first.poll() is None, (tmp_path / "output").read_text()
    finally:
        first.kill()
        first.wait()
    before = _kept(tmp_path)
    await until(lambda: pids("ray::NodeActor") == [])  # which end with the engine
    second = _flowevolve(tmp_path, other_cluster.address, "resume", "run")
    await until(lambda: second.poll() is not None)
    assert second.returncode == 0, (tmp_path / "output").read_text()
    after = _kept(tmp_path)
    assert after[: len(before)] == before
    assert len(after) == len(set(after)) == 8 * 3
