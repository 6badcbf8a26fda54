"""The command line as a user meets it: exit codes, one helpful line for every mistake, files left behind."""

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
from tests.support.command import flowevolve
from tests.support.slurm import install_commands

GOOD = """
clock = "virtual"
[budget]
proposals = 3
"""
ON_SLURM = """
algorithm.name = "one_plus_lambda"
task = {name = "program", problem = "circle_packing_26"}
sandbox = {on = "slurm", address = "127.0.0.1"}
budget.evaluations = 3
"""
ROWS = '{"key": 1, "prompt": "p", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}\n'


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


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(GOOD)
    return path


INSTRUCTIONS = ("task.name=instructions", "task.data.path=rows.jsonl")
OPENAI = ("clock=real", "llm.backend=openai")

MISTAKES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "unknown section": (("budjet.minutes=1",), 2, "did you mean 'budget'"),
    "unknown key": (("budget.minuts=1",), 2, "did you mean 'minutes'"),
    "unknown llm key": (("llm.modle=x",), 2, "did you mean 'model'"),
    "unknown key of a section that may be left out": (("start.rnu=x",), 2, "did you mean 'run'"),
    "wrong type": (("seed=abc",), 2, "seed"),
    "negative seed": (("seed=-1",), 2, "seed"),
    "zero budget": (("budget.minutes=0",), 2, "budget.minutes"),
    "negative tokens": (("budget.tokens=-5",), 2, "budget.tokens"),
    "target that is no number": (("budget.target_score=nan",), 2, "budget.target_score"),
    "bad clock": (("clock=wall",), 2, "clock"),
    "bad mode": (("algorithm.mode=async",), 2, "algorithm.mode"),
    "zero in flight": (("algorithm.max_in_flight=0",), 2, "max_in_flight"),
    "unknown algorithm": (("algorithm.name=gepaa",), 2, "did you mean 'gepa'"),
    "unknown algorithm setting": (("algorithm.minibach=3",), 2, "did you mean 'minibatch'"),
    "bad algorithm setting": (("algorithm.minibatch=0",), 2, "algorithm.minibatch"),
    "bad selection": (("algorithm.candidate_selection=best",), 2, "candidate_selection"),
    "unknown task": (("task.name=housestyle",), 2, "did you mean 'house_style'"),
    "unknown task setting": (("task.data=1",), 2, "task.data"),
    "task not importable": (("task.name=no_such_module:Task",), 2, "no_such_module"),
    "missing task data": (("task.name=math",), 2, "task.data is missing"),
    "missing data file": (("task.name=math", "task.data.path=nowhere.jsonl"), 2, "nowhere.jsonl: no such data file"),
    "unknown data format": (("task.name=math", "task.data.path=run.toml"), 2, "unknown kind of file"),
    "empty data": (("task.name=math", "task.data.path=empty.jsonl"), 2, "holds no rows"),
    "bad json line": (("task.name=math", "task.data.path=broken.jsonl"), 2, "broken.jsonl: line 2"),
    "row without a field": (
        ("task.name=math", "task.data.path=rows.jsonl"),
        2,
        "'problem' is missing; its columns are key",
    ),
    "unknown constraint": (("task.name=instructions", "task.data.path=unknown.jsonl"), 2, "made:up"),
    "too few rows": ((*INSTRUCTIONS, "task.data.sizes={train=50,val=50}"), 2, "add up to 100 rows, but the data has 5"),
    "empty split": ((*INSTRUCTIONS, "task.data.sizes={train=2}"), 2, "'val' would be empty"),
    "duplicate ids": ((*INSTRUCTIONS, "task.data.id_field=key"), 2, "have the same 'key'"),
    "missing id field": ((*INSTRUCTIONS, "task.data.id_field=nr"), 2, "no field 'nr'"),
    "unknown policy": (("staleness.policy=guard",), 2, "did you mean 'guarded'"),
    "unknown policy setting": (("staleness.policy=guarded", "staleness.max_gaps=3"), 2, "did you mean 'max_gap'"),
    "unknown ordering": (("scheduler.order.policy=later",), 2, "did you mean 'later_first'"),
    "unfair ordering": (("scheduler.order.fair_every=0",), 2, "scheduler.order.fair_every"),
    "unknown admission": (("scheduler.admission.policy=latncy",), 2, "did you mean 'latency'"),
    "unknown admission setting": (("scheduler.admission.target=1",), 2, "has no such setting"),
    "bad admission setting": (
        ("scheduler.admission.policy=server_queue", "scheduler.admission.least=20"),
        2,
        "scheduler.admission.least is 20, but has to be at most start, which is 16",
    ),
    "bad look": (("scheduler.admission.interval_seconds=0",), 2, "scheduler.admission.interval_seconds"),
    "unknown stage": (("stages.evaluat.workers=3",), 2, "evaluat"),
    "zero workers": (("stages.evaluate.workers=0",), 2, "stages.evaluate.workers"),
    "unknown profile": (("sim.profile=h100",), 2, "unknown profile"),
    "unknown world": (("sim.world=rule",), 2, "unknown world"),
    "unknown preset": (("sim.preset=hard",), 2, "unknown preset"),
    "virtual clock on a real server": (("llm.backend=openai", "llm.model=m"), 2, "virtual"),
    "no model": (OPENAI, 2, "llm.model"),
    "dollars without a price": ((*OPENAI, "llm.model=m", "budget.dollars=1"), 2, "price of 'm'"),
    "dollars without a price, simulated": (("budget.dollars=1", "llm.roles.judge.model=j"), 2, "of 'simulated', 'j'"),
    "missing prices": (("llm.prices_file=none.toml",), 2, "none.toml: the prices can't be read"),
    "key in the config": (("llm.api_key=sk-1",), 2, "llm.api_key: keys don't belong in a configuration"),
    "key for a variable's name": (("llm.roles.task.api_key_env=sk-1",), 2, "keys don't belong in a configuration"),
    "missing key file": (
        (*OPENAI, "llm.model=m", "llm.api_key_file=none"),
        2,
        "llm.api_key_file: there is no such file",
    ),
    "model without a backend": (("llm.model=m",), 2, "backend is missing, though model is given; set it to 'openai'"),
    "address without a backend": (("llm.roles.task.base_url=http://h/v1",), 2, "though roles.task.base_url is given"),
    "variable of a key that is not set": (
        (*OPENAI, "llm.model=m", "llm.base_url=http://127.0.0.1:9/v1", "llm.api_key_env=NOT_SET_ANYWHERE"),
        2,
        "the environment variable NOT_SET_ANYWHERE, which is to hold the key for http://127.0.0.1:9/v1, is not set",
    ),
    "address is that of one function": (
        (*OPENAI, "llm.model=m", "llm.base_url=http://h/v1/chat/completions"),
        2,
        "llm.base_url: the address is that of one function of the API; leave out /chat/completions at its end",
    ),
    "bandit without models": (("llm.roles.task.bandit=ucb",), 2, "at least two models"),
    "unreachable server": ((*OPENAI, "llm.model=m", "llm.base_url=http://127.0.0.1:9/v1"), 3, "127.0.0.1:9"),
    "override without a value": (("seed",), 2, "such as --set budget.minutes=10"),
    "override inside a value": (("seed.x=1", "clock.y.z=2"), 2, "clock"),
    "held out without a test split": (
        ("held_out=true", *INSTRUCTIONS, "task.data.sizes={train=2,val=2}"),
        2,
        "no test examples",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_helpful_line(mistake: str, config: Path) -> None:
    overrides, code, says = MISTAKES[mistake]
    folder = config.parent
    (folder / "rows.jsonl").write_text(ROWS * 5)
    (folder / "empty.jsonl").write_text("")
    (folder / "broken.jsonl").write_text(ROWS + "{\n")
    (folder / "unknown.jsonl").write_text(ROWS.replace("punctuation:no_comma", "made:up") * 5)
    settings = [part for override in overrides for part in ("--set", override)]
    done = flowevolve("run", str(config), *settings, "--out", "out", cwd=folder)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [("[budget\n", "not valid TOML"), ("", "budget is missing"), ("[budget]\n", "at least one limit")],
)
def test_bad_files_are_named(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(content)
    done = flowevolve("check", "bad.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "bad.toml" in done.stderr
    missing = flowevolve("check", "none.toml", cwd=tmp_path)
    assert missing.returncode == 2
    assert "none.toml: no such config file" in missing.stderr


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
    assert "holds a run already" in again.stderr
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


def test_a_run_that_is_refused_leaves_no_directory(config: Path) -> None:
    assert flowevolve("run", "run.toml", "--set", "task.name=nothing", cwd=config.parent).returncode == 2
    assert not list(config.parent.glob("runs/*"))


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


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (("held_out=true", *INSTRUCTIONS, "task.data.sizes={train=2,val=2}"), "no test examples"),
        (("algorithm.name=combee", "algorithm.fan_in=10", "algorithm.max_in_flight=2"), "gathers 10 items at a time"),
        (("start.run=nowhere",), "nowhere"),
    ],
)
def test_check_refuses_what_a_run_would(settings: tuple[str, ...], says: str, config: Path) -> None:
    (config.parent / "rows.jsonl").write_text(ROWS * 4)
    arguments = [word for setting in settings for word in ("--set", setting)]
    for command in ("check", "run"):
        done = flowevolve(command, "run.toml", *arguments, cwd=config.parent)
        assert done.returncode == 2, done.stdout
        assert says in done.stderr


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
