"""Extras that are not installed are named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["dspy", "gepa"])
def test_it_says_what_to_install(name: str) -> None:
    code = (
        "import importlib.util as util; find = util.find_spec; "
        f"util.find_spec = lambda name, *rest: None if name == '{name}' else find(name, *rest); "
        f"import flowevolve.compat.{name}"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert f"InputError: flowevolve.compat.{name} needs {name}" in done.stderr
    assert f"pip install 'flowevolve[{name}]'" in done.stderr
