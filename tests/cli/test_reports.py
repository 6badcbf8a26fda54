"""Looking at runs: ``report``, ``status`` and ``compare``, of runs that have ended, go on, or were cut off."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from shutil import copytree

import pytest

import flowevolve as fe
from flowevolve.journal.lock import Lock
from flowevolve.journal.reading import RecordedRun
from flowevolve.page.reading.source import RunSource
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow
from tests.support.command import flowevolve
from tests.support.journals import edited

CONFIG = """
clock = "virtual"
[budget]
proposals = 12
[llm.prices.simulated]
input = 1.0
output = 2.0
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that has ended after it was gone on with (runs/done), and one as a kill would leave it then
    (runs/cut).
    """
    folder = tmp_path_factory.mktemp("reports")
    (folder / "run.toml").write_text(CONFIG)
    begun = flowevolve("run", "run.toml", "--out", "runs/done", "--set", "budget.proposals=6", cwd=folder)
    assert begun.returncode == 0
    assert flowevolve("resume", "runs/done", "--set", "budget.proposals=12", cwd=folder).returncode == 0
    copytree(folder / "runs" / "done", folder / "runs" / "cut")
    (folder / "runs" / "cut" / "result.json").unlink()
    return folder


def printed(*arguments: str, cwd: Path) -> list[dict[str, object]]:
    done = flowevolve(*arguments, "--json", cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize(
    ("command", "file"),
    [(("report",), "report.html"), (("export",), "export"), (("export", "--format", "trace"), "export")],
)
def test_where_a_run_s_directory_can_not_be_written_to_another_place_is_asked_for(
    command: tuple[str, ...], file: str, made: Path, tmp_path: Path
) -> None:
    copytree(made / "runs" / "done", tmp_path / "done")
    (tmp_path / "done" / file).write_text("")
    (tmp_path / "done" / f"{file}.part").mkdir()
    done = flowevolve(*command, "done", cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: done/{file}")
    assert "can't be written: " in line
    assert line.endswith("; name another place with --out")


def test_status_has_a_line_for_each_run(made: Path) -> None:
    done = flowevolve("status", "--all", cwd=made)
    assert done.returncode == 0, done.stderr
    cut, ended = [line.split() for line in done.stdout.splitlines()]
    assert cut[:2] == ["runs/cut", "interrupted"]
    assert ended[:2] == ["runs/done", "finished"]
    assert cut[2:] == ended[2:]
    assert " ".join(ended).endswith("% of 12 proposals")
    assert flowevolve("status", "runs/cut", cwd=made).stdout.split() == cut


def test_status_says_where_the_limit_of_tokens_cut_off_many_replies(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        'clock = "virtual"\n[budget]\nseconds = 70\n[llm.roles.reflection]\nmax_tokens = 60\n'
    )
    assert flowevolve("run", "run.toml", "--out", "done", cwd=tmp_path).returncode == 0
    copytree(tmp_path / "done", tmp_path / "cut")
    (tmp_path / "cut" / "result.json").unlink()
    (told,) = printed("report", "done", cwd=tmp_path)
    counts = told["llm"]["cut_replies"]  # type: ignore[index]
    cut, of = counts["reflection"]["cut"], counts["reflection"]["of"]
    said = f"{cut} of {of} replies in role 'reflection' were cut by the limit of"
    lines = flowevolve("status", "cut", "done", cwd=tmp_path).stdout.splitlines()
    assert lines[2:] == [f"{run}: {said} tokens" for run in ("cut", "done")]
    assert [each["cut_replies"] for each in printed("status", "cut", "done", cwd=tmp_path)] == [counts, counts]
    assert said in flowevolve("report", "cut", cwd=tmp_path).stdout


def test_what_a_run_failed_by_is_told(tmp_path: Path) -> None:
    with pytest.raises(fe.TaskFailedError) as caught:
        fe.optimize(
            prompt="Answer [bold]briefly.",
            train=[{"question": f"[/] {n}", "answer": str(n)} for n in range(4)],
            metric=lambda row, output: 1 / 0,
            llm="simulated",
            clock="virtual",
            budget=fe.Budget(proposals=2),
            out=tmp_path / "late",
        )
    lines = flowevolve("status", "late", cwd=tmp_path).stdout.splitlines()
    assert lines[1] == f"late: it failed: {caught.value}"
    report = " ".join(flowevolve("report", "late", cwd=tmp_path).stdout.split())
    assert f"error {caught.value}" in report
    with RunSource(tmp_path / "late", "late") as source:
        assert next(Tables(source.changes()).of(RunRow)).error == str(caught.value)  # what its page shows


def test_status_has_a_line_for_each_run_that_can_be_read_and_names_the_others(made: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    copytree(made / "runs" / "cut", bad)
    (bad / "journal.sqlite").write_bytes(b"nonsense")
    done = flowevolve("status", "runs/cut", str(bad), "runs/done", cwd=made)
    assert done.returncode == 2
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["runs/cut", "runs/done"]
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"left out: {bad}")
    alone = flowevolve("status", str(bad), cwd=made)
    assert (alone.returncode, alone.stdout) == (2, "")
    assert alone.stderr.startswith(f"error: {bad}")


def test_a_run_that_somebody_works_on_is_running(made: Path) -> None:
    lock = Lock(made / "runs" / "cut")
    try:
        assert "running" in flowevolve("status", "runs/cut", cwd=made).stdout
        assert "still running" in flowevolve("report", "runs/cut", cwd=made).stdout
    finally:
        lock.release()
    assert "interrupted" in flowevolve("status", "runs/cut", cwd=made).stdout


def test_of_a_run_at_work_in_real_time_the_time_is_told_up_to_now_though_nothing_happens(made: Path) -> None:
    at_work = made / "elsewhere" / "at_work"
    copytree(made / "runs" / "cut", at_work)
    with edited(at_work) as journal:
        journal.execute("""UPDATE meta SET value = json_set(value, '$.clock', 'real') WHERE key = 'config'""")
    (before,) = printed("status", str(at_work), cwd=made)
    os.utime(at_work / "journal.sqlite", (0, 0))
    lock = Lock(at_work)
    try:
        (during,) = printed("status", str(at_work), cwd=made)
        assert "running, nothing new for " in flowevolve("status", str(at_work), cwd=made).stdout
        assert "is still running, nothing new for " in flowevolve("report", str(at_work), cwd=made).stdout
    finally:
        lock.release()
    (after,) = printed("status", str(at_work), cwd=made)
    assert during["wall_seconds"] > before["wall_seconds"] + 1e9  # type: ignore[operator]  # as nothing was written since 1970
    assert after["wall_seconds"] == before["wall_seconds"]
    assert during["silent_seconds"] > 1e9  # type: ignore[operator]
    assert (before["silent_seconds"], before["paused"]) == (0.0, None)


def test_the_journal_of_an_unfinished_run_tells_what_the_result_does(made: Path) -> None:
    cut, ended = printed("compare", "runs/cut", "runs/done", cwd=made)
    differing = {name for name in cut if cut[name] != ended[name]}
    assert differing <= {"directory", "state", "stop_reason", "wall_seconds", "llm"}
    assert cut["llm"] == pytest.approx(ended["llm"])  # dollars are added up in another order
    assert (cut["stop_reason"], ended["stop_reason"]) == (None, "proposals")
    assert isinstance(ended["best"], Mapping)
    assert ended["best"]["interval"]


def test_compare_prints_a_table(made: Path) -> None:
    head, cut, ended = flowevolve("compare", "runs/cut", "runs/done", cwd=made).stdout.splitlines()
    for name in ("algorithm", "seed", "best", "95 %", "proposals", "tokens", "dollars", "time"):
        assert name in head
    assert cut.split()[:5] == ["runs/cut", "gepa", "(stream)", "house_style", "interrupted"]
    assert ended.split()[:5] == ["runs/done", "gepa", "(stream)", "house_style", "finished"]
    assert cut.split()[5:-1] == ended.split()[5:-1]


def test_compare_says_where_tasks_differ(made: Path) -> None:
    copytree(made / "runs" / "done", made / "elsewhere" / "a")
    with edited(made / "elsewhere" / "a") as journal:
        journal.execute("""UPDATE meta SET value = json_set(value, '$.task.name', 'math') WHERE key = 'config'""")
    assert "scores can't be compared" in flowevolve("compare", "runs/done", "elsewhere/a", cwd=made).stdout


def test_report_of_an_unfinished_run_says_so_and_how_to_go_on(made: Path) -> None:
    done = flowevolve("report", "runs/cut", cwd=made)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == (
        "unfinished: this run was stopped or killed; to go on: flowevolve resume runs/cut"
    )
    for text in ("gepa (stream) on house_style", "seed 0.", "best system_prompt", "dollars", "of 12 proposals"):
        assert text in done.stdout


def test_report_as_json_has_the_result_or_what_is_known_of_it(made: Path) -> None:
    (ended,) = printed("report", "runs/done", cwd=made)
    result = json.loads((made / "runs" / "done" / "result.json").read_text())
    assert ended == {"directory": "runs/done", "state": "finished", **result}
    (cut,) = printed("report", "runs/cut", cwd=made)
    assert cut["state"] == "interrupted"
    assert isinstance(cut["best"], Mapping)
    assert cut["best"] == {name: result["best"][name] for name in ("id", "score", "interval", "components")}
    for name in ("seed_score", "proposals", "accepted", "rollouts", "pool_version"):
        assert cut[name] == result[name]


def test_of_all_runs_those_that_cant_be_read_are_left_out(made: Path, tmp_path: Path) -> None:
    copytree(made / "runs" / "done", tmp_path / "runs" / "done")
    (tmp_path / "runs" / "empty").mkdir()
    (tmp_path / "runs" / "empty" / "journal.sqlite").touch()
    done = flowevolve("status", "--all", cwd=tmp_path)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr.startswith("left out: runs/empty/journal.sqlite is empty")


def test_run_as_json_prints_one_object_and_nothing_else(made: Path) -> None:
    done = flowevolve("run", "run.toml", "--out", "told", "--json", "--set", "budget.proposals=2", cwd=made)
    told = json.loads(done.stdout)
    result = json.loads((made / "told" / "result.json").read_text())
    assert told == {"directory": "told", "state": "finished", "exit_code": 0, **result}
    assert "best" in done.stderr
    again = flowevolve("run", "run.toml", "--out", "told", "--json", cwd=made)
    failed = json.loads(again.stdout)
    assert again.returncode == failed.pop("exit_code") == 2
    assert again.stderr.splitlines()[-1] == f"error: {failed.pop('error')}"
    assert failed == {"directory": "told", "state": "failed"}
    more = flowevolve("resume", "told", "--json", "--set", "budget.proposals=4", cwd=made)
    assert json.loads(more.stdout)["proposals"] == 4


def test_the_time_of_a_run_goes_on_with_its_calls(made: Path) -> None:
    """The validation of the seed may take long, and there is no event before it has ended."""
    with RecordedRun(made / "runs" / "cut") as recorded:
        last = recorded.last_event()
        assert last is not None
        ends = [call.finished for call in recorded.calls()]
        assert recorded.seconds() == max(last[1], *ends) > 0
