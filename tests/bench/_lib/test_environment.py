"""By which commit measured code is known."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench._lib import environment


def test_a_commit_of_something_else_leaves_measured_code_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    def commit(name: str) -> str:
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "--message", name)
        return git("rev-parse", "--short", "HEAD").strip()

    monkeypatch.setattr(environment, "ROOT", tmp_path)
    git("init")
    code = commit("runs.py")
    words = commit("page.md")
    assert environment.last_change(["runs.py"]) == code
    assert environment.last_change([".", ":(exclude)page.md"]) == code
    assert environment.last_change(["."]) == words
