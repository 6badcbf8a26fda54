"""Modules of one's own, which lie beside a configuration or in the working folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flowevolve._util import plugins
from flowevolve._util.errors import InputError
from flowevolve._util.plugins import LoadError, imported
from flowevolve.config.run import load_config, with_overrides
from flowevolve.runner.assemble import make_task

TASK = """
import flowevolve as fe


class Shorten:
    name = "shorten"
    data = fe.Dataset([fe.Example("a", {})], [fe.Example("b", {})])

    def seed(self):
        return fe.Artifact({"prompt": "x"})

    async def rollout(self, artifact, example, llm):
        raise NotImplementedError
"""
CONFIG = """
[task]
name = "MODULE:Shorten"

[budget]
proposals = 1
"""


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left behind on Python's path."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(plugins, "_MODULES", plugins._Modules())


def folder(parent: Path, module: str) -> Path:
    """A folder with a configuration and the task that it names."""
    made = parent / f"of {module}"
    made.mkdir()
    (made / "run.toml").write_text(CONFIG.replace("MODULE", module))
    (made / f"{module}.py").write_text(TASK)
    return made


def test_a_task_is_found_beside_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    there = folder(tmp_path, "task_beside_a_config")
    assert make_task(load_config(there / "run.toml")).name == "shorten"
    assert make_task(load_config(f"{there.name}/run.toml")).name == "shorten"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_each_configuration_has_the_task_of_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.chdir(tmp_path)
    configs = {}
    for name in order:
        (tmp_path / name).mkdir()
        there = folder(tmp_path / name, f"task_of_two_{order}")
        (there / f"helper_of_two_{order}.py").write_text(f"NAME = 'the task in {name}'")
        task = next(there.glob("task*.py"))
        task.write_text(
            f"from helper_of_two_{order} import NAME\n{TASK.replace(chr(34) + 'shorten' + chr(34), 'NAME')}"
        )
        configs[name] = load_config(there / "run.toml", ["seed=3"])
    tasks = {name: make_task(configs[name]) for name in order}
    assert {name: task.name for name, task in tasks.items()} == {name: f"the task in {name}" for name in order}
    first, second = list(order)
    assert type(make_task(configs[first])) is type(tasks[first])
    assert type(make_task(with_overrides(configs[second], ["seed=4"]))) is type(tasks[second])
    monkeypatch.chdir(tmp_path / first / f"of task_of_two_{order}")
    assert type(make_task(configs[second])) is type(tasks[second])
    assert imported(f"task_of_two_{order}:Shorten") is type(tasks[first])


def test_a_module_is_found_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder(tmp_path, "task_in_a_working_folder"))
    assert isinstance(imported("task_in_a_working_folder:Shorten"), type)


def test_folders_of_modules_may_lie_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tasks_of_mine").mkdir()
    (tmp_path / "tasks_of_mine" / "one.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    assert isinstance(imported("tasks_of_mine.one:Shorten"), type)


def test_what_is_on_the_path_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise AssertionError")
    monkeypatch.chdir(tmp_path)
    assert imported("json:dumps") is not None


def test_one_that_is_nowhere_is_told_with_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = folder(tmp_path, "task_without_its_file")
    (there / "task_without_its_file.py").unlink()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as raised:
        make_task(load_config(there / "run.toml"))
    assert str(raised.value) == (
        "task: can't use task 'task_without_its_file:Shorten': there is no module 'task_without_its_file' on Python's "
        f"path or in {there} or {tmp_path}; put task_without_its_file.py there, or install it"
    )


def test_a_module_that_needs_another_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "task_that_needs_more.py").write_text("import nothing_of_that_name")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LoadError, match="No module named 'nothing_of_that_name'"):
        imported("task_that_needs_more")


@pytest.mark.parametrize("target", ["", ":x", " :x"])
def test_no_name_is_no_module(target: str) -> None:
    with pytest.raises(LoadError):
        imported(target)
