"""What a watcher raises is its own error: it ends the run and is taken for nothing else, and the run can be gone on with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import Config, parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.journal.reading import RecordedRun
from flowevolve.runner.run import Watchers, run

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
    """Raises from the so-manieth time on."""

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
