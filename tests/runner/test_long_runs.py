"""Runs that last, as real processes: killed, interrupted, on a full disk, with a damaged journal, after a long sleep."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path

import anyio
import pytest

from flowevolve._util import clock
from flowevolve._util.errors import FlowevolveError
from flowevolve.config.run import parse_config
from flowevolve.engine.engine import Engine
from flowevolve.journal.reading import RecordedRun
from flowevolve.runner.result import Result
from flowevolve.runner.resume import resume
from flowevolve.runner.run import run

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-c", "from flowevolve.cli.app import main; main()")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
CONFIG = """
[algorithm]
max_in_flight = 6
[staleness]
policy = "reflective"
[speculation]
alpha = { generate = 0.34, evaluate = 0.3 }
[sim]
profile = "fast-demo"
[budget]
proposals = 8
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.toml").write_text(CONFIG)
    return tmp_path


def begin(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


def finish(folder: Path, *arguments: str, code: int = 0, limit: str = "") -> str:
    """Run a command to its end; returns what it had to complain about. ``limit``: a shell's limit on what it may do."""
    command = [*COMMAND, *arguments]
    if limit:
        command = ["bash", "-c", f'ulimit {limit}; exec "$@"', "bash", *command]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def end_when_it_says(process: subprocess.Popen[str], words: str, how: signal.Signals) -> int:
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if words in line:
                process.send_signal(how)
                break
        process.communicate(timeout=60)
    return process.returncode


def check(directory: Path) -> None:
    """Everything begun has ended once, every update was applied once, every reply paid once."""
    with RecordedRun(directory) as recorded:
        events, calls = list(recorded.events()), list(recorded.calls())
    assert [event.seq for event in events] == list(range(len(events)))
    begun = [e.data["item"] for e in events if e.kind == "item.sent"]
    begun += [str(e.data["flow"]) for e in events if e.kind == "flow.open"]
    assert Counter(begun) == Counter(e.data["item"] for e in events if e.kind == "item.done")
    commits = [event.data for event in events if event.kind == "pool.commit"]
    assert [each["version"] for each in commits] == list(range(1, len(commits) + 1))
    assert max(Counter((call.stage, call.item, call.index, call.messages) for call in calls).values()) == 1
    result = json.loads((directory / "result.json").read_text())
    assert result["pool_version"] == len(commits)
    assert result["llm"]["requests"] == len(calls)


def test_killed_twice_it_goes_on_and_ends_in_good_order(folder: Path) -> None:
    assert end_when_it_says(begin(folder, "run", "run.toml", "--out", "out"), "version 1 ", signal.SIGKILL) == -9
    assert finish(folder, "report", "out") == ""
    assert end_when_it_says(begin(folder, "resume", "out"), "going on", signal.SIGKILL) == -9
    finish(folder, "resume", "out")
    check(folder / "out")
    assert "the run has ended, stopped by the limit on proposals." in finish(folder, "resume", "out", code=2)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_stops_in_good_order_and_can_be_gone_on_with(folder: Path, how: signal.Signals) -> None:
    options = ("--set", "budget.proposals=100000", "--set", "drain_seconds=0.1")
    assert end_when_it_says(begin(folder, "run", "run.toml", "--out", "out", *options), "version 1 ", how) == 130
    stopped = json.loads((folder / "out" / "result.json").read_text())
    assert stopped["stop_reason"] == "interrupted"
    finish(folder, "resume", "out", "--set", "budget.proposals=8", "--set", "drain_seconds=30")
    check(folder / "out")


def test_two_processes_in_one_directory_are_one_too_many(folder: Path) -> None:
    with begin(folder, "run", "run.toml", "--out", "out", "--set", "budget.proposals=100000") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "best" in line:
                break
        says = finish(folder, "resume", "out", code=2)
        process.kill()
        process.communicate()
    holder = f"process {process.pid} on {socket.gethostname()}"
    assert says == f"error: out: {holder} is at work in this run directory; wait until it has ended, or stop it\n"


def test_on_a_full_disk_it_says_so_in_one_line_and_goes_on_once_there_is_space(folder: Path) -> None:
    (says,) = finish(folder, "run", "run.toml", "--out", "out", code=1, limit="-f 100").splitlines()
    assert says.startswith("error: out/journal.sqlite: the journal could not be written: ")
    assert says.endswith("What was written before that is safe; free some space, and resume the run")
    finish(folder, "resume", "out")
    check(folder / "out")


SETTINGS: Mapping[str, object] = {
    "clock": "virtual",
    "algorithm": {"max_in_flight": 6},
    "staleness": {"policy": "reflective"},
    "budget": {"proposals": 12},
}


def on_the_virtual_clock(go: Callable[[], Coroutine[object, object, Result]]) -> Result:
    return clock.run(go, clock="virtual")


def test_what_was_cut_off_when_time_was_up_is_finished_once_there_is_more(tmp_path: Path) -> None:
    hurried = {**SETTINGS, "budget": {"seconds": 100, "proposals": 12}, "drain_seconds": 1}
    first = on_the_virtual_clock(lambda: run(parse_config(hurried, "test"), out=tmp_path))
    assert first.report.stop_reason == "seconds"
    assert first.report.held
    more = ("budget.seconds=100000", "drain_seconds=30")
    second = on_the_virtual_clock(lambda: resume(tmp_path, changes=more))
    assert second.report.stop_reason == "proposals"
    check(tmp_path)


@pytest.mark.parametrize("after", [3, 30, 60])
def test_a_clock_that_jumps_an_hour_ends_no_run_and_loses_no_call(tmp_path: Path, after: int) -> None:
    """As when the process is stopped, or its machine sleeps: every answer in flight is overdue at once."""

    async def sleep(engine: Engine) -> None:
        await anyio.sleep(after)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, clock.VirtualClockLoop)
        loop.now += 3600

    result = on_the_virtual_clock(lambda: run(parse_config(SETTINGS, "test"), out=tmp_path, side_task=sleep))
    assert result.report.stop_reason == "proposals"
    assert result.report.wall_seconds > 3600
    assert result.llm.failed == 0
    check(tmp_path)


def _garbage(journal: Path) -> None:
    journal.write_bytes(os.urandom(50_000))


def _cut(journal: Path) -> None:
    os.truncate(journal, journal.stat().st_size // 2)


def _stub(journal: Path) -> None:
    os.truncate(journal, 50)


def _scratch(journal: Path) -> None:
    with journal.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (journal.stat().st_size - 4096))


def _empty(journal: Path) -> None:
    os.truncate(journal, 0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that has ended, to be copied."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "run.toml").write_text(CONFIG)
    finish(folder, "run", "run.toml", "--out", "out", "--set", "clock=virtual", "--set", "budget.proposals=2")
    return folder / "out"


@pytest.mark.parametrize("damage", [_garbage, _cut, _stub, _scratch, _empty])
def test_a_damaged_journal_is_one_line(whole: Path, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    out = shutil.copytree(whole, tmp_path / "out")
    damage(out / "journal.sqlite")

    async def go() -> Result:
        return await resume(out, changes=["budget.proposals=4"])

    with pytest.raises(FlowevolveError, match=r"journal\.sqlite|out: ") as caught:
        clock.run(go, clock="virtual")
    assert "\n" not in str(caught.value)
