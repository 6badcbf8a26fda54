"""What a watcher raises is its own error: it ends the run and is taken for nothing else, and the run can be gone on with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import Config, parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.journal.reading import RecordedRun
from flowevolve.programs import ProgramTask
from flowevolve.runner.run import Watchers, run
from flowevolve.sandbox import SandboxSettings
from flowevolve.sandbox.local import LocalEvaluators
from flowevolve.sandbox.nodes.leases import LeasedEvaluators
from tests.support.memory_cluster import MemoryCluster
from tests.support.problems import Nearest

TABLE: dict[str, object] = {
    "clock": "virtual",
    "task": {"name": "house_style"},
    "llm": {"backend": "sim"},
    "budget": {"proposals": 4},
}


class OwnError(Exception):
    """Of a watcher."""


def broken(told: object) -> None:
    raise OwnError("the disk of the watcher is full")


class Breaking:
    """Raises from that call on, counted from 1."""

    def __init__(self, times: int) -> None:
        self._left = times

    def __call__(self, told: object) -> None:
        self._left -= 1
        if self._left <= 0:
            broken(told)


def config(**more: object) -> Config:
    return parse_config({**TABLE, **more}, "test")


def watching(kind: str, tell: Callable[[object], None]) -> Watchers:
    kinds = {"events": Watchers(events=(tell,)), "calls": Watchers(calls=(tell,)), "traffic": Watchers(traffic=(tell,))}
    return kinds[kind]


@pytest.mark.parametrize("kind", ["events", "calls", "traffic"])
def test_what_a_watcher_raises_comes_out_as_it_is(kind: str) -> None:
    with pytest.raises(OwnError, match="the disk of the watcher is full"):
        clock.run(lambda: run(config(), watchers=watching(kind, broken)), clock="virtual")


@pytest.mark.parametrize("kind", ["events", "calls"])
def test_no_work_is_lost_by_it(kind: str, tmp_path: Path) -> None:
    out, after = tmp_path / "out", list[CallRecord]()
    with pytest.raises(OwnError):
        clock.run(lambda: run(config(), out=out, watchers=watching(kind, Breaking(60))), clock="virtual")
    with RecordedRun(out) as recorded:
        calls = [call.reply for call in recorded.calls()]
        assert "rollout.failed" not in [event.kind for event in recorded.events()]
    assert calls
    assert None not in calls, "no call is taken for one that failed"
    result = clock.run(lambda: fe.resume(out, watchers=Watchers(calls=(after.append,))), clock="virtual")
    assert result.proposals == 4
    assert result.llm.requests >= len(calls)


def test_what_a_watcher_of_machines_raises_leaves_the_lost_node_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = SandboxSettings(preload=(), concurrency=1, timeout=5)
    cluster = MemoryCluster(partial(LocalEvaluators, sandbox), size=1)
    monkeypatch.setattr(
        "flowevolve.programs.task.open_evaluators", lambda settings, tell: LeasedEvaluators(cluster, tell=tell)
    )
    budget = {"evaluations": 20}
    settings = config(algorithm={"name": "best_of_n"}, task={}, sim={"world": "code"}, budget=budget)

    def have_it_leave(event: Event) -> None:
        if event.kind == "node.joined":
            cluster.present.clear()

    watchers = Watchers(events=(have_it_leave,), notes=(broken,))
    with pytest.raises(OwnError, match="the disk of the watcher is full"):
        clock.run(partial(run, settings, task=ProgramTask(Nearest(), sandbox), watchers=watchers), clock="virtual")
    assert [node.killed.is_set() for node in cluster.nodes.values()] == [True]
