"""What version 0.1 left behind is taken by this one, or told in a line what is to be changed (tests/from_0_1)."""

from __future__ import annotations

import lzma
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import flowevolve as fe
from tests.support.command import Done, flowevolve

LEFT = Path(__file__).parent / "from_0_1"


def left_run(name: str, tmp_path: Path) -> Path:
    """A run directory of 0.1, unpacked."""
    directory = tmp_path / name
    directory.mkdir()
    for path in (LEFT / name).iterdir():
        if path.suffix == ".xz":
            (directory / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
        else:
            shutil.copy(path, directory)
    return directory


def start_from(directory: Path, cwd: Path) -> Done:
    short = ["--set", "held_out=false", "--set", "budget.proposals=1"]
    return flowevolve("run", str(LEFT / "config.toml"), "--from", str(directory), *short, cwd=cwd)


def test_a_config_is_read() -> None:
    config = fe.load_config(LEFT / "config.toml")
    assert (config.budget.proposals, config.staleness.policy, config.stages["evaluate"].max_workers) == (
        6,
        "reflective",
        8,
    )


def test_a_finished_run_is_reported_exported_and_started_from(tmp_path: Path) -> None:
    directory = left_run("finished", tmp_path)
    reported = flowevolve("report", str(directory), cwd=tmp_path)
    assert "score        seed 0.2306, best 0.3778 (c3)" in reported.stdout
    exported = flowevolve("export", str(directory), "--out", "exported", cwd=tmp_path)
    assert exported.stdout.startswith(
        "6 candidates and 445 calls written to exported\nthe best candidate: exported/best/"
    )
    started = start_from(directory, tmp_path)
    assert started.returncode == 0, started.stderr
    assert "best 0.3778 (c3)" in started.stdout


def test_a_finished_run_is_a_result_in_python(tmp_path: Path) -> None:
    result = fe.Result.load(left_run("finished", tmp_path))
    assert result.best is not None
    assert result.held_out is not None
    assert (result.best.id, len(result.candidates), result.held_out.best_interval) == ("c3", 6, None)
    assert "held out" in result._repr_html_()


def test_an_interrupted_run_says_what_is_to_be_done_where_it_can_not_be_gone_on_with(tmp_path: Path) -> None:
    directory = left_run("interrupted", tmp_path)
    resumed = flowevolve("resume", str(directory), cwd=tmp_path)
    assert resumed.returncode == 2
    (line,) = resumed.stderr.splitlines()
    assert "start a new run from its pool: flowevolve run CONFIG --from DIR" in line
    started = start_from(directory, tmp_path)
    assert started.returncode == 0, started.stderr
    with closing(sqlite3.connect(directory / "journal.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM calls").fetchone() == (115,)  # nothing of it was lost


def run_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *overrides: str) -> Done:
    """A short run of the configuration with plug-ins of then, or of ``tmp_path``."""
    monkeypatch.syspath_prepend(LEFT)
    monkeypatch.syspath_prepend(tmp_path)
    given = [word for override in ("held_out=false", *overrides) for word in ("--set", override)]
    return flowevolve("run", str(LEFT / "config.toml"), *given, cwd=tmp_path)


def test_a_task_and_a_policy_of_then_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_with(
        tmp_path, monkeypatch, "task.name=old_task:OldTask", "task.most_words=20", "speculation={}",
        "racing.policy=off", "staleness={policy='old_policy:Lenient', most=2}",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "stopped by" in done.stdout, done.stdout


TOLD = {
    "algorithm={name='old_algorithm:OnePlusLambda'}": "flowevolve.Section of 0.1 is flowevolve.Settings since 0.2",
    "llm={backend='old_backend:Mine', model='m'}": "flowevolve.llm.types of 0.1 is flowevolve.core.model since 0.2",
    "algorithm={name='other_form:OnePlusLambda'}": "(other_form.py, line 63). Was it written for another version",
}


@pytest.mark.parametrize("named", TOLD)
def test_what_has_another_name_or_form_now_is_told(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (LEFT / "old_algorithm.py").read_text(encoding="utf-8")
    (tmp_path / "other_form.py").write_text(
        text.replace("fe.Section", "fe.Settings").replace("reflective_search.", "other_form."), encoding="utf-8"
    )
    done = run_with(tmp_path, monkeypatch, named)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert TOLD[named] in line
