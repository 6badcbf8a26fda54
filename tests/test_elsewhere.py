"""Prompts evolve where modules and calls that only Linux or POSIX has are gone; programs are refused there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_prompt_evolves_and_programs_are_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.elsewhere", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    result, refusal = done.stdout.splitlines()
    assert result == "best: True, locked: 1"
    assert refusal.startswith("sandbox: programs run on Linux on ")
    assert "run flowevolve in Docker" in refusal
    assert (tmp_path / "run" / "result.json").is_file()
