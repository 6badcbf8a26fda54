"""The command line as a user meets it: what its commands do, what they print, and which files they leave behind."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import load_config
from tests.cli.conftest import GOOD
from tests.support.command import flowevolve
from tests.support.slurm import install_commands

ON_SLURM = """
algorithm.name = "one_plus_lambda"
task = {name = "program", problem = "circle_packing_26"}
sandbox = {on = "slurm", address = "127.0.0.1"}
budget.evaluations = 3
"""


def test_the_package_is_the_command_line() -> None:
    command = [sys.executable, "-m", "flowevolve"]
    done = subprocess.run([*command, "list", "algorithms"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "levi" in done.stdout
    done = subprocess.run([*command, "check", "none.toml"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: none.toml: no such config file\n")


def test_a_run_of_a_script_is_not_said_to_go_on(tmp_path: Path) -> None:
    fe.optimize(
        prompt="Answer.",
        train=[{"question": f"Say {n}."} for n in range(4)],
        metric=lambda row, output: 0.5,
        llm="simulated",
        budget=fe.Budget(proposals=1),
        clock="virtual",
        out=tmp_path / "out",
        progress=False,
    )
    done = flowevolve("resume", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "going on" not in done.stdout + done.stderr
    assert "start its script again (with resume=True, if it calls flowevolve.optimize)" in done.stderr


def test_a_resumed_run_is_told_by_the_limits_that_somebody_had_raised(config: Path) -> None:
    out = config.parent / "out"

    async def go() -> None:
        async with fe.open_run(load_config(config), out=out) as engine:
            async for event in engine.events():
                if event.kind == "pool.commit" and event.data["version"] == 1:
                    await engine.act(fe.RaiseBudget({"proposals": 40}), "ada")
                    await engine.act(fe.Stop(), "ada")

    clock.run(go, clock="virtual")
    done = flowevolve("resume", "out", cwd=config.parent)
    assert done.returncode == 0, done.stderr
    assert "% of 40 proposals" in done.stdout
    assert "% of 3 proposals" not in done.stdout


def test_a_resumed_run_that_ends_at_once_says_why_and_how_to_go_on(config: Path) -> None:
    clock.run(partial(fe.run, load_config(config), out=config.parent / "out"), clock="virtual")
    done = flowevolve("resume", "out", "--set", "algorithm.max_in_flight=2", cwd=config.parent)
    assert done.returncode == 0, done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert "note: out: nothing new was begun" in said
    assert "--set budget.proposals=…" in said
    assert "s, reached before the run was resumed" in said


def test_a_task_beside_the_configuration_is_found(tmp_path: Path) -> None:
    (tmp_path / "nearby_task.py").write_text("from flowevolve.tasks.house_style import house_style_task as make\n")
    (tmp_path / "run.toml").write_text('task.name = "nearby_task:make"\n[budget]\nproposals = 3\n')
    done = flowevolve("check", "run.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_run_writes_a_result_and_report_reads_it(config: Path) -> None:
    folder = config.parent
    done = flowevolve("run", "run.toml", "--out", "out", "--events", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout
    result = json.loads((folder / "out" / "result.json").read_text())
    assert result["stop_reason"] == "proposals"
    assert (folder / "out" / "events.jsonl").stat().st_size > 0
    again = flowevolve("run", "run.toml", "--out", "out", cwd=folder)
    assert again.returncode == 2
    assert "out holds a run already. To go on with it, call flowevolve resume out, or in Python" in again.stderr
    report = flowevolve("report", "out", cwd=folder)
    assert report.returncode == 0
    assert "best" in report.stdout
    assert flowevolve("report", "elsewhere", cwd=folder).returncode == 2


def test_runs_that_begin_at_once_get_directories_of_their_own(config: Path) -> None:
    command = [sys.executable, "-c", "from flowevolve.cli.app import main; main()", "run", "run.toml"]
    runs = [
        subprocess.Popen(command, cwd=config.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(3)
    ]
    said = [run.communicate(timeout=120)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], said
    assert len(list(config.parent.glob("runs/run-*/result.json"))) == 3


def test_limits_in_time_that_are_set_beside_another_are_told_to_add_up(config: Path) -> None:
    done = flowevolve(
        "check", "run.toml", "--set", "budget.minutes=10", "--set", "budget.seconds=30", cwd=config.parent
    )
    assert "note: the budget's limits in time add up: 10 minutes and 30 seconds are 10.5 minutes" in done.stdout
    alone = flowevolve("check", "run.toml", "--set", "budget.minutes=10", cwd=config.parent)
    assert (done.returncode, alone.returncode) == (0, 0)
    assert "add up" not in alone.stdout


@pytest.mark.parametrize("arguments", [("sim", "--port", "70000"), ("run", "run.toml", "--metrics-port", "-1")])
def test_a_port_that_can_not_be_is_refused(arguments: tuple[str, ...], config: Path) -> None:
    done = flowevolve(*arguments, cwd=config.parent)
    assert done.returncode == 2
    assert "invalid value for" in done.stderr
    assert "Traceback" not in done.stderr


def test_texts_are_shown_as_they_are(config: Path) -> None:
    """What looks like markup or an emoji to a console is part of the name of something."""
    folder = config.parent
    assert flowevolve("run", "run.toml", "--out", "[i]:bug:", cwd=folder).stdout.endswith("written to [i]:bug:\n")
    path = folder / "[i]:bug:" / "result.json"
    result = json.loads(path.read_text())
    result["task"] = "[b]:ant:"
    result["best"]["components"] = {"[b]:bee:": "[b]:eye:"}
    path.write_text(json.dumps(result))
    report = flowevolve("report", "[i]:bug:", cwd=folder).stdout
    for text in ("[b]:ant:", "best [b]:bee:", "[b]:eye:"):
        assert text in report
    wrong = flowevolve("run", "run.toml", "--set", "algorithm.name=a:warning:b", cwd=folder)
    assert "'a:warning:b'" in wrong.stderr
    (folder / "[b]:cat:.toml").write_text(GOOD)
    assert "[b]:cat:.toml: fine" in flowevolve("check", "[b]:cat:.toml", cwd=folder).stdout


def test_a_run_is_exported_and_compacted(config: Path) -> None:
    folder = config.parent
    assert flowevolve("run", "run.toml", "--out", "out", cwd=folder).returncode == 0
    done = flowevolve("export", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "written to out/export" in done.stdout
    traced = flowevolve("export", "out", "--format", "trace", cwd=folder)
    assert traced.stdout == "written to out/export/trace.json; open it at https://ui.perfetto.dev to look at it\n"
    assert json.loads((folder / "out" / "export" / "trace.json").read_text())["traceEvents"]
    assert (folder / "out" / "export" / "best" / "system_prompt.txt").exists()
    lines = len((folder / "out" / "export" / "calls.jsonl").read_text().splitlines())
    assert f"{lines} calls" in done.stdout
    done = flowevolve("compact", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"dropped the texts of {lines} calls" in done.stdout
    for command in ("export", "compact"):
        done = flowevolve(command, "elsewhere", cwd=folder)
        assert (done.returncode, done.stderr) == (2, "error: elsewhere: no such run directory\n")


def test_a_damaged_run_is_told_and_repaired(config: Path) -> None:
    folder = config.parent
    assert flowevolve("run", "run.toml", "--out", "out", cwd=folder).returncode == 0
    sound = "out: nothing is wrong with the journal\n"
    assert flowevolve("repair", "out", "--check", cwd=folder).stdout == sound
    with closing(sqlite3.connect(folder / "out" / "journal.sqlite")) as journal:
        (events,) = journal.execute("SELECT count(*) FROM events").fetchone()
        journal.execute("UPDATE events SET data = '{}' WHERE seq = ?", (events - 3,))
        journal.commit()
    said = f"event {events - 3} is not as it was written"
    for command in (("export", "out"), ("resume", "out"), ("repair", "out", "--check")):
        done = flowevolve(*command, cwd=folder)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert f"is damaged: {said}" in done.stderr
        assert "flowevolve repair out" in done.stderr
    done = flowevolve("repair", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    first, saved, gone, *_, last = done.stdout.splitlines()
    assert first == f"the journal was damaged: {said}"
    assert saved.startswith(f"saved: {events - 3} events and ")
    assert gone.startswith("gone: what came after that, 3 events and ")
    assert last == "the damaged files are in out/damaged; to go on: flowevolve resume out"
    assert flowevolve("repair", "out", cwd=folder).stdout == sound
    assert flowevolve("resume", "out", cwd=folder).returncode == 0
    assert (folder / "out" / "result.json").exists()


def test_a_run_is_replayed(config: Path) -> None:
    folder = config.parent
    flowevolve("run", "run.toml", "--out", "out", cwd=folder)
    same = flowevolve("replay", "out", cwd=folder)
    assert same.returncode == 0, same.stderr
    assert "are those recorded for the same requests" in " ".join(same.stdout.split())
    other = flowevolve("replay", "out", "--set", "budget.proposals=9", "--slots", "8", "--out", "what-if", cwd=folder)
    assert other.returncode == 0, other.stderr
    assert "stand-ins" in other.stdout
    assert json.loads((folder / "what-if" / "result.json").read_text())["backend"] == "replay"
    assert "stand-ins" in flowevolve("report", "what-if", cwd=folder).stdout
    for wrong, says in ((["nowhere"], "no such run directory"), (["out", "--set", "seed=3"], "can't change seed")):
        done = flowevolve("replay", *wrong, cwd=folder)
        assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
        assert says in done.stderr


def test_same_seed_same_events_in_another_process(config: Path) -> None:
    """Invariant 6, with other hash seeds."""
    logs = {}
    for name, seed, hash_seed in (("a", 1, "1"), ("b", 1, "2"), ("c", 2, "1")):
        settings = ["--set", f"seed={seed}", "--set", "staleness.policy=reflective", "--set", "budget.proposals=10"]
        subprocess.run(
            [sys.executable, "-m", "flowevolve", "run", "run.toml", "--events", *settings, "--out", name],
            cwd=config.parent,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )
        logs[name] = (config.parent / name / "events.jsonl").read_bytes()
    assert logs["a"] == logs["b"]
    assert logs["a"] != logs["c"]


def test_check_submits_no_job_and_says_so(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = install_commands(config.parent, monkeypatch)
    config.write_text(ON_SLURM)
    done = flowevolve("check", "run.toml", cwd=config.parent)
    assert done.returncode == 0, done.stderr
    assert "note: no job was submitted" in done.stdout
    assert not (commands / "submitted").exists()
    done = flowevolve("check", "run.toml", "--set", "sandbox.slurm.mem_bg=4", cwd=config.parent)
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        ["error: sandbox.slurm.mem_bg: unknown key; did you mean 'mem_gb'?"],
    )


def test_check_and_list(config: Path) -> None:
    folder = config.parent
    assert "fine" in flowevolve("check", "run.toml", cwd=folder).stdout
    graph = flowevolve("list", "algorithms", "--graph", "gepa", cwd=folder).stdout
    assert all(stage in graph for stage in ("select", "generate", "propose", "repair", "screen", "evaluate", "update"))
    program = ["--set", "task.name=program", "--set", "task.problem=circle_packing_26"]
    graph = flowevolve("list", "algorithms", "--graph", "one_plus_lambda", *program, cwd=folder).stdout
    assert all(stage in graph for stage in ("write", "assess", "update"))
    for what, name in (
        ("tasks", "house_style"),
        ("tasks", "program"),
        ("problems", "circle_packing_32"),
        ("policies", "staleness: reflective"),
        ("policies", "scheduler.order: later_first"),
        ("policies", "scheduler.admission: server_queue"),
        ("profiles", "qwen3"),
        ("worlds", "rules"),
    ):
        assert name in flowevolve("list", what, cwd=folder).stdout


def test_interrupted_once_it_drains_and_leaves_a_result(config: Path) -> None:
    command = [sys.executable, "-c", "from flowevolve.cli.app import main; main()", "run", "run.toml", "--out", "out"]
    settings = ["--set", "clock=real", "--set", "budget.proposals=100000", "--set", "sim.profile=fast-demo"]
    with subprocess.Popen([*command, *settings], cwd=config.parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "best" in line:
                process.send_signal(signal.SIGINT)
                break
        process.communicate(timeout=60)
    assert process.returncode == 130
    result = json.loads((config.parent / "out" / "result.json").read_text())
    assert result["stop_reason"] == "interrupted"
    assert result["pool_version"] >= 1
