"""The example that the how-to points to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_example_improves_on_its_seed() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "examples" / "gepa_adapter.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.splitlines()[-1].removeprefix("score ").split(":")[0].split(" -> ")
    assert float(after) > float(before)


def test_without_gepa_it_says_what_to_install() -> None:
    code = (
        "import importlib.util as util; find = util.find_spec; "
        "util.find_spec = lambda name, *rest: None if name == 'gepa' else find(name, *rest); "
        "import flowevolve.compat.gepa"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert "InputError: flowevolve.compat.gepa: needs gepa" in done.stderr
    assert "pip install 'flowevolve[gepa]'" in done.stderr
