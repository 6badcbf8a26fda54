"""Builds a program in C++."""

import base64
import subprocess
from pathlib import Path


def harness_build(program: str) -> dict[str, str]:
    """Return the machine code as base64, or the compiler's messages if it failed."""
    Path("solution.cpp").write_text(program, encoding="utf-8")
    command = ["g++", "-O2", "-std=c++17", "-s", "-o", "solution", "solution.cpp"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    if done.returncode != 0:
        return {"errors": done.stderr[:4000] or f"g++ ended with {done.returncode}"}
    return {"code": base64.b64encode(Path("solution").read_bytes()).decode()}
