"""By which commit measured code is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench._lib import history
from tests.support.repository import Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setattr(history, "ROOT", tmp_path)
    return Repository(tmp_path)


def test_a_commit_of_something_else_leaves_measured_code_what_it_was(repository: Repository) -> None:
    code = repository.commit("runs.py", "1")
    words = repository.commit("page.md", "1")
    assert history.last_change(["runs.py"]) == code
    assert history.last_change([".", ":(exclude)page.md"]) == code
    assert history.last_change(["."]) == words


def test_a_commit_that_changes_no_figure_leaves_measured_code_what_it_was(repository: Repository) -> None:
    code = repository.commit("runs.py", "1")
    repository.commit("runs.py", "2", "Other words\n\nFigures-unchanged: the words of an error")
    assert history.last_change(["runs.py"]) == code


def test_a_commit_can_say_so_of_some_benches_alone(repository: Repository) -> None:
    first = repository.commit("runs.py", "1")
    trailer = "Figures-unchanged-of: quality, ace: their runs before\n  and after were the same"
    second = repository.commit("runs.py", "2", f"More flows\n\n{trailer}")
    for bench in ("quality", "ace"):
        assert history.commits(["runs.py"], first, bench) == [(second, "their runs before and after were the same")]
    assert history.commits(["runs.py"], first, "throughput") == [(second, "")]
    assert history.last_change(["runs.py"]) == second
    third = repository.commit(
        "runs.py", "3", f"Fewer\n\n{trailer}\nFigures-unchanged-of: plan: none of its runs has any"
    )
    assert history.commits(["runs.py"], second, "plan") == [(third, "none of its runs has any")]
    assert history.commits(["runs.py"], second, "ace") == [(third, "their runs before and after were the same")]


def test_without_a_history_nothing_is_known_of_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "ROOT", tmp_path)
    assert history.last_change(["runs.py"]) == ""
    assert history.commits(["runs.py"], "abc") == []
