"""`flowevolve new`: what it writes works once it is installed, and it overwrites nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.cli.scaffold import scaffold
from tests.support.site_packages import pip_install


@pytest.mark.parametrize("kind", ["algorithm", "task"])
def test_a_new_package_passes_its_own_test_once_installed(kind: str, tmp_path: Path) -> None:
    folder = scaffold(kind, "hill-climb", tmp_path / "source")
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == "hill-climb"
    assert project["entry-points"] == {f"flowevolve.{kind}s": {"hill_climb": "hill_climb:HillClimb"}}
    pip_install(folder, tmp_path / "site")
    (tmp_path / "tests").mkdir()
    test = (folder / "test_hill_climb.py").rename(tmp_path / "tests" / "test_hill_climb.py")
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["algorithm", "task"])
@pytest.mark.parametrize("name", ["hill_climb", "reflective_search_of_prompts"])
def test_what_is_written_is_formatted_and_clean(kind: str, name: str, tmp_path: Path) -> None:
    folder = scaffold(kind, name, tmp_path / name)
    (folder / "ruff.toml").write_text('line-length = 120\nlint.select = ["E", "F", "UP", "B", "ANN", "RUF"]\n')
    for command in (["check"], ["format", "--check", "--line-length", "120"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", str(folder)]
        done = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Hill.Climb", "can't be the name of a package; give lower-case words"),
        ("hill climb", "can't be the name"),
        ("../up", "can't be the name"),
        ("", "can't be the name"),
        ("class", "can't be the name"),
        ("true", "can't be the name"),
        ("false", "can't be the name"),
        ("none", "can't be the name"),
        ("hill__climb", "can't be the name"),
        ("gepa", "the algorithm 'gepa' exists already"),
        ("json", "a Python module of this name"),
        ("flowevolve", "a Python module of this name"),
        ("evaluate", "would use the name Evaluate for two things"),
    ],
)
def test_names_that_would_not_work_are_refused(name: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        scaffold("algorithm", name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for folder in ("full", "file"):
        with pytest.raises(InputError, match="exists already and is not overwritten; name another folder with --dir"):
            scaffold("algorithm", "hill_climb", Path(folder))
    (tmp_path / "hill_climb").mkdir()
    assert scaffold("algorithm", "hill_climb") == Path("hill_climb")
    with pytest.raises(InputError, match="not overwritten"):
        scaffold("algorithm", "hill_climb")
    assert (tmp_path / "full" / "notes.txt").read_text() == (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_cant_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be written"):
        scaffold("task", "hill_climb", tmp_path / "file" / "new")
