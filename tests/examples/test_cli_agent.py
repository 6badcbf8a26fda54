"""examples/cli_agent: a program on the command line writes harnesses; what it starts does not outlive it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.tasks.labelling import BASELINES
from tests.support.killed import ends

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "cli_agent"
WRITE = "echo x=$$ > new/no_harness.py"
"""In a shell: a proposal, as a run ends with those; another one each time."""
ROWS = [("itchy red skin", "rash"), ("skin rash spreads", "rash"), ("cough and cold", "flu"), ("fever, cough", "flu")]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))


def evolve(tmp_path: Path, *command: str, **settings: object) -> tuple[Result, list[fe.Event]]:
    """A run with this command as the agent; its events."""
    rows = tmp_path / "rows.csv"
    rows.write_text("\n".join(["question,answer", *(f'"{text}",{label}' for text, label in ROWS * 4)]))
    algorithm = {
        "name": "agent_harness:AgentHarness",
        "max_in_flight": 1,
        "candidates": 1,
        "test": False,
    }
    config = parse_config(
        {
            "clock": "virtual",
            "algorithm": {**algorithm, "command": command, "run_seconds": 2, **settings},
            "task": {
                "name": "harness",
                "sets": {"symptoms": {"path": str(rows), "sizes": {"train": 8, "val": 4, "test": 4}}},
            },
            "sandbox": {"preload": []},
            "sim": {"world": "harness"},
            "budget": {"proposals": 2, "minutes": 5},
        },
        "test",
    )
    events: list[fe.Event] = []

    async def go() -> Result:
        return await run(config, watchers=Watchers(events=(events.append,)))

    return clock.run(go, clock="virtual"), events


def wrote(events: list[fe.Event]) -> list[Mapping[str, object]]:
    return [cast("Mapping[str, object]", event.data) for event in events if event.kind == "agent.wrote"]


def test_it_is_under_100_lines() -> None:
    assert len((FOLDER / "agent_harness.py").read_text("utf-8").splitlines()) < 100


def test_what_the_agent_writes_is_scored(tmp_path: Path) -> None:
    result, events = evolve(tmp_path, sys.executable, "-m", "stand_in")
    assert result.report.error is None
    written = [each for each in result.report.pool.snapshot().candidates() if each.operator == "write"]
    assert len(written) == 2
    assert all(each.scores for each in written)
    assert [each["said"] for each in wrote(events)] == ["wrote one_more.py\n"] * 2
    shown = [str(each.artifact["harness"]) for each in written]
    assert "SHOWN = 5" in shown[0]
    assert BASELINES["few_shot"] not in shown


def test_it_finds_what_a_proposer_may_read(tmp_path: Path) -> None:
    _, events = evolve(tmp_path, "sh", "-c", f"find . -type f; {WRITE}")
    said = str(wrote(events)[0]["said"])
    assert {"./task.txt", "./summary.txt", "./frontier.txt"} < set(said.split())
    assert "./harnesses/" in said


def test_an_agent_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """What it has written by then counts."""
    result, events = evolve(tmp_path, "sh", "-c", f"{WRITE}; sleep 3600", agent_seconds=0.1)
    assert {each["status"] for each in wrote(events)} == {-signal.SIGKILL}
    assert len(list(result.report.pool.snapshot().candidates("rejected"))) == 2


def test_what_an_agent_leaves_running_ends_with_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    _, events = evolve(tmp_path, "sh", "-c", f"sleep 3600 & echo $! >> '{pids}'; {WRITE}")
    left = pids.read_text().split()
    assert len(left) == len(wrote(events)) > 0
    assert all(ends(int(pid)) for pid in left)


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(fe.InputError, match=r"algorithm\.command: there is no program 'no-such-agent'"):
        evolve(tmp_path, "no-such-agent")


def test_an_agent_that_writes_nothing_ends_the_run_though_it_takes_no_virtual_time(tmp_path: Path) -> None:
    with pytest.raises(fe.InputError, match="3 proposers in a row wrote no harness"):
        evolve(tmp_path, "true", in_vain=3)
