"""A configuration that works."""

from __future__ import annotations

from pathlib import Path

import pytest

GOOD = """
clock = "virtual"
[budget]
proposals = 3
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(GOOD)
    return path
