"""By which commit measured code is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench._lib import environment
from tests.support.repository import Repository


def test_a_commit_of_something_else_leaves_measured_code_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    repository = Repository(tmp_path)
    code = repository.commit("runs.py", "1")
    words = repository.commit("page.md", "1")
    assert environment.last_change(["runs.py"]) == code
    assert environment.last_change([".", ":(exclude)page.md"]) == code
    assert environment.last_change(["."]) == words
