"""Ctrl-C and SIGTERM, whatever a command's run is at: the virtual clock, with signals that the process sends itself."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.journal.reading import RecordedRun
from flowevolve.runner import interrupts
from flowevolve.runner.clients import SideTask
from flowevolve.runner.interrupts import until_interrupted
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers
from flowevolve.tasks.house_style import house_style_task

ROOT = Path(__file__).parents[2]
SHORT = house_style_task(make_rows(rules=12, per_example=3, overlap=0.3, rows=90, seed=1))
BOTH = pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
TASK = """
import os

import anyio

from flowevolve.core.task import Dataset
from flowevolve.tasks.house_style import house_style_task


class Signalling:
    \"\"\"Sends its own process the signal in $SIGNAL where $WHEN says.\"\"\"

    def __init__(self):
        whole = house_style_task()
        self.task, self.name = whole, "signalling"
        self.data = Dataset(whole.data.train[:6], whole.data.val[:6], whole.data.test[:6])
        self.left = 4

    async def __aenter__(self):
        if os.environ.get("WHEN") == "start":
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))
            await anyio.sleep_forever()
        return self

    async def __aexit__(self, *error):
        print("left")

    def seed(self):
        return self.task.seed()

    async def rollout(self, artifact, example, llm):
        rollout = await self.task.rollout(artifact, example, llm)
        if os.environ.get("WHEN") == "held out" and example in self.data.test:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), int(os.environ["SIGNAL"]))
                await anyio.sleep_forever()
        return rollout
"""
CONFIG = """
clock = "virtual"
held_out = true
[task]
name = "signalling:Signalling"
[budget]
proposals = 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "signalling.py").write_text(TASK)
    (tmp_path / "run.toml").write_text(CONFIG)
    return tmp_path


def flowevolve(folder: Path, *arguments: str, how: signal.Signals, when: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}", "SIGNAL": str(int(how)), "WHEN": when}
    command = [sys.executable, "-c", "from flowevolve.cli.app import main; main()", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env=environment, check=False
    )


@BOTH
def test_during_the_held_out_test_the_run_can_be_gone_on_with(folder: Path, how: signal.Signals) -> None:
    done = flowevolve(folder, "run", "run.toml", "--out", "out", how=how, when="held out")
    assert (done.returncode, done.stderr) == (130, "")
    assert done.stdout.endswith("left\ninterrupted; to go on: flowevolve resume out\n")
    assert not (folder / "out" / "result.json").exists()
    with RecordedRun(folder / "out") as recorded:
        before = [call for call in recorded.calls() if call.stage == "held_out"]
    assert len(before) >= 4
    done = flowevolve(folder, "resume", "out", how=how)
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "out" / "result.json").read_text())["held_out"]["examples"] == 6
    with RecordedRun(folder / "out") as recorded:
        after = [call for call in recorded.calls() if call.stage == "held_out"]
    assert after[: len(before)] == before
    assert len(after) == 12


def test_a_script_that_is_interrupted_during_the_held_out_test_is_told_how_to_go_on(tmp_path: Path) -> None:
    rows = [{"question": str(number), "answer": "yes"} for number in range(6)]
    interrupts = iter([True])

    async def metric(row: dict[str, str], output: str) -> float:
        if row == rows[-1] and next(interrupts, False):
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep_forever()
        return 0.5

    def evolve(*, resume: bool) -> Result:
        return fe.optimize(
            prompt="Answer.",
            train=rows[:4],
            test=rows[4:],
            metric=metric,
            llm="simulated",
            clock="virtual",
            budget=fe.Budget(rollouts=2),
            progress=False,
            out=tmp_path,
            resume=resume,
        )

    with pytest.raises(KeyboardInterrupt) as interrupt:
        evolve(resume=False)
    assert str(interrupt.value) == f"what was done is in {tmp_path}: to go on, start the script again with resume=True"
    result = evolve(resume=True)
    assert result.held_out is not None
    assert result.held_out.examples == 2


@BOTH
def test_before_the_run_has_begun_it_is_over_in_good_order(folder: Path, how: signal.Signals) -> None:
    done = flowevolve(folder, "run", "run.toml", "--out", "out", how=how, when="start")
    assert (done.returncode, done.stderr) == (130, "")
    assert done.stdout.endswith("interrupted before the run began\n")
    assert flowevolve(folder, "run", "run.toml", "--out", "out", how=how).returncode == 0


@pytest.fixture
def each_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals count as presses of their own, however soon in real time they come."""
    monkeypatch.setattr(interrupts, "ONE_PRESS_SECONDS", 0.0)


def interrupted(*, twice: bool) -> Result | None:
    settings = {"clock": "virtual", "held_out": True, "drain_seconds": 10_000, "budget": {"proposals": 50}}
    config = parse_config(settings, "test")

    async def go(side_task: SideTask) -> Result:
        async def signals(engine: fe.Engine) -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(side_task, engine)
                await anyio.sleep(60.0)
                signal.raise_signal(signal.SIGINT)
                if twice:
                    await anyio.sleep(0.1)
                    signal.raise_signal(signal.SIGINT)

        return await fe.run(config, task=SHORT, side_task=signals)

    return clock.run(until_interrupted, go, clock="virtual")


def test_a_signal_that_somebody_passes_on_as_well_is_one_press(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "ONE_PRESS_SECONDS", 60.0)
    result = interrupted(twice=True)
    assert result is not None
    assert (result.report.stop_reason, result.report.held) == ("interrupted", 0)


@pytest.mark.usefixtures("each_its_own")
@pytest.mark.parametrize("twice", [False, True])
def test_a_run_that_is_interrupted_pays_for_no_held_out_test(twice: bool) -> None:
    result = interrupted(twice=twice)
    assert result is not None
    assert result.report.stop_reason == "interrupted"
    assert result.held_out is None
    assert (result.report.held > 0) == twice


def interrupted_as_it_ends(directory: Path, why: Mapping[str, object], signals: int, drain_seconds: float) -> Result:
    """A run that ends for a reason of its own, and gets signals then."""
    settings = {
        "clock": "virtual",
        "held_out": True,
        "drain_seconds": drain_seconds,
        "budget": {"proposals": 50},
        **why,
    }
    stopping = anyio.Event()

    async def go(side_task: SideTask) -> Result:
        async def send(engine: fe.Engine) -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(side_task, engine)
                await stopping.wait()
                for _ in range(signals):
                    signal.raise_signal(signal.SIGINT)
                    await anyio.sleep(0.1)

        watchers = Watchers(events=[lambda event: stopping.set() if event.kind == "run.stopping" else None])
        return await fe.run(
            parse_config(settings, "test"), task=SHORT, out=directory, side_task=send, watchers=watchers
        )

    result = clock.run(until_interrupted, go, clock="virtual")
    assert result is not None
    return result


ENDING = pytest.mark.parametrize(
    ("why", "reason"),
    [
        ({"budget": {"proposals": 50, "target_score": 0.4}}, "target_score"),
        ({"stopping": {"no_improvement": 4}}, "no_improvement"),
    ],
)


@ENDING
def test_the_first_signal_does_not_cut_off_a_run_that_is_ending(
    tmp_path: Path, why: Mapping[str, object], reason: str
) -> None:
    report = interrupted_as_it_ends(tmp_path / "out", why, signals=1, drain_seconds=10_000).report
    assert (report.stop_reason, report.held) == (reason, 0)


@ENDING
@pytest.mark.usefixtures("each_its_own")
@pytest.mark.parametrize(("signals", "drain_seconds"), [(1, 0.5), (2, 10_000.0)])
def test_a_run_that_a_signal_cuts_off_as_it_ends_was_interrupted_and_can_be_gone_on_with(
    tmp_path: Path, why: Mapping[str, object], reason: str, signals: int, drain_seconds: float
) -> None:
    cut_off = interrupted_as_it_ends(tmp_path / "out", why, signals, drain_seconds)
    assert cut_off.report.stop_reason == "interrupted"
    assert cut_off.report.held > 0
    assert cut_off.held_out is None
    whole = clock.run(lambda: fe.resume(tmp_path / "out", task=SHORT), clock="virtual")
    assert (whole.report.stop_reason, whole.report.held) == (reason, 0)
    assert whole.held_out is not None


HUNG = """
import os
import signal
import threading

from flowevolve.tasks.metric import MetricTask

FIRST = threading.Lock()


def press_until_ended():
    while True:  # the pause tells one Ctrl-C from another
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(0.4)


def slow(row, output):
    FIRST.acquire()
    press_until_ended()


async def held_up(row, output):
    slow(row, output)


ROWS = [{"question": str(number), "answer": "yes"} for number in range(2)]


def task():
    return MetricTask("Answer.", ROWS, slow)
"""
SCRIPT = """
import flowevolve as fe
from hung import ROWS, held_up, slow

fe.optimize(
    prompt="Answer.", train=ROWS, metric={metric}, llm="simulated", clock="virtual", budget=fe.Budget(proposals=2),
    progress=False, out="out",
)
print("went on")
"""


@pytest.mark.parametrize(
    ("metric", "second"),
    [
        ("slow", "waiting for slow() at line 19 of {file}, called N s ago; Ctrl-C again ends the process at once"),
        ("held_up", "the event loop is held up by held_up() at line 23 of {file}; Ctrl-C again ends the process"),
    ],
)
def test_a_third_signal_ends_a_script_whose_metric_hangs(tmp_path: Path, metric: str, second: str) -> None:
    (tmp_path / "hung.py").write_text(HUNG)
    command = [sys.executable, "-c", SCRIPT.format(metric=metric)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (130, "")
    said, ended, parting = done.stderr.splitlines()
    assert re.sub(r"\d+ s ago", "N s ago", said).startswith(second.format(file=tmp_path / "hung.py"))
    assert ended.startswith("ended at once, in the midst of ")
    assert parting == "what was done is in out: to go on, start the script again with resume=True"


def test_a_third_signal_ends_a_command_whose_metric_hangs_and_what_was_done_is_kept(tmp_path: Path) -> None:
    (tmp_path / "hung.py").write_text(HUNG)
    (tmp_path / "run.toml").write_text(
        CONFIG.replace("signalling:Signalling", "hung:task").replace("held_out = true", "")
    )
    done = flowevolve(tmp_path, "run", "run.toml", "--out", "out", how=signal.SIGINT)
    assert done.returncode == 130
    assert done.stderr.endswith("interrupted; to go on: flowevolve resume out\n")
    with RecordedRun(tmp_path / "out") as recorded:
        assert any(True for _ in recorded.calls())
