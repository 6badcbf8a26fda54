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
