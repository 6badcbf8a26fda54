"""A run that is branched off a candidate of another one begins with that candidate's texts, and says where they are from."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from flowevolve import clock, run
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.event_kinds import CandidateProposed, PoolCommitted
from flowevolve.core.logged_changes import LoggedAdd
from flowevolve.journal.reading import RecordedRun
from flowevolve.page.reading.source import RunSource
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow
from flowevolve.tasks.house_style import house_style_task
from tests.support.command import Done, flowevolve

CONFIG = 'clock = "virtual"\nseed = 3\n[budget]\nproposals = 6\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, ``runs/first``."""
    folder = tmp_path_factory.mktemp("branches")
    (folder / "run.toml").write_text(CONFIG, "utf-8")
    done = flowevolve("run", "run.toml", "--out", "runs/first", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def candidates(run: Path) -> dict[str, Artifact]:
    """What the run in a directory proposed, by candidate, the seed first."""
    with RecordedRun(run) as recorded:
        return {each.candidate: each.proposal().artifact for each in recorded.events_of(CandidateProposed)}


def config_of(run: Path) -> Any:
    return tomllib.loads((run / "config.toml").read_text("utf-8"))


def branch(folder: Path, candidate: str, out: str, *more: str) -> Done:
    return flowevolve("branch", "runs/first", "--candidate", candidate, "--out", out, *more, cwd=folder)


def test_the_new_run_begins_with_the_candidate_s_texts_under_the_same_configuration(folder: Path) -> None:
    before = candidates(folder / "runs/first")
    chosen = list(before)[-1]
    done = branch(folder, chosen, "runs/second", "--set", "budget.proposals=2", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "finished"
    assert next(iter(candidates(folder / "runs/second").values())) == before[chosen]
    first, second = config_of(folder / "runs/first"), config_of(folder / "runs/second")
    assert second.pop("branch") == {
        "run": "runs/first",
        "candidate": chosen,
        "version": version_of(folder / "runs/first", chosen),
        "texts": dict(before[chosen]),
    }
    assert second == {**first, "budget": {"proposals": 2}}
    with RunSource(folder / "runs/second", "second") as source:
        (row,) = Tables(source.changes()).of(RunRow)
    assert row.branched_from == f"{chosen} of runs/first, version {version_of(folder / 'runs/first', chosen)}"


def version_of(run: Path, candidate: str) -> int:
    """The pool's version in which a candidate came into it."""
    with RecordedRun(run) as recorded:
        commits = list(recorded.events_of(PoolCommitted))
    return next(
        commit.version
        for commit in commits
        if any(isinstance(change, LoggedAdd) and change.add == candidate for change in commit.changes)
    )


def test_a_run_that_is_only_written_is_begun_by_resume(folder: Path) -> None:
    seed = next(iter(candidates(folder / "runs/first")))
    done = branch(folder, seed, "runs/third", "--no-start")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "written to runs/third/config.toml; to begin the run: flowevolve resume runs/third\n"
    config = (folder / "runs/third/config.toml").read_text("utf-8")
    (text,) = config_of(folder / "runs/third")["branch"]["texts"].values()
    (folder / "runs/third/config.toml").write_text(config.replace(json.dumps(text), '"Be brief."'), "utf-8")
    done = flowevolve("resume", "runs/third", "--set", "budget.proposals=1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert list(next(iter(candidates(folder / "runs/third").values())).values()) == ["Be brief."]


def test_a_branch_is_gone_on_with_and_branched_again_like_any_run(folder: Path) -> None:
    seed, *_, last = candidates(folder / "runs/first")
    assert branch(folder, last, "runs/fourth", "--set", "budget.proposals=1").returncode == 0
    (folder / "runs/first").rename(folder / "runs/moved")
    try:
        done = flowevolve("resume", "runs/fourth", "--set", "budget.proposals=2", cwd=folder)
    finally:
        (folder / "runs/moved").rename(folder / "runs/first")
    assert done.returncode == 0, done.stderr
    done = flowevolve("branch", "runs/fourth", "--candidate", seed, "--out", "runs/fifth", "--no-start", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert config_of(folder / "runs/fifth")["branch"]["run"] == "runs/fourth"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere", "--candidate", "c1"), "nowhere: no such run directory"),
        (("runs/first", "--candidate", "c999"), "runs/first has no candidate 'c999'; "),
        (("runs/first", "--candidate", "SEED", "--set", "budget.proposal=1"), "--set: budget.proposal: unknown key"),
        (("runs/first", "--candidate", "SEED", "--out", "runs/first"), "runs/first holds a run already"),
        (
            ("runs/first", "--candidate", "SEED", "--set", "branch.texts={more='x'}"),
            "branch.texts has texts for 'more'",
        ),
    ],
)
def test_what_can_not_be_branched_is_one_line(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    seed = next(iter(candidates(folder / "runs/first")))
    named = [seed if each == "SEED" else each for each in arguments]
    done = flowevolve("branch", *(named if "--out" in named else [*named, "--out", "runs/none"]), cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {said}")
    assert done.stderr.count("\n") == 1
    assert not (folder / "runs/none").exists()


def test_a_run_whose_task_was_an_object_says_how_it_is_branched(folder: Path, tmp_path: Path) -> None:
    config = parse_config(tomllib.loads(CONFIG) | {"budget": {"proposals": 1}}, "test")
    clock.run(lambda: run(config, task=house_style_task(), out=tmp_path / "given"), clock="virtual")
    done = flowevolve("branch", "given", "--candidate", "c0", "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "task was given in Python, so branch it from there" in done.stderr
