"""Builds a program in C++, and runs it for one test after another, each in a process of its own."""

import base64
import os
import subprocess
import zlib
from pathlib import Path


def harness_build(program: str) -> dict[str, str]:
    """The machine code as text, or what the compiler has to say."""
    Path("solution.cpp").write_text(program, encoding="utf-8")
    command = ["g++", "-O2", "-std=c++17", "-s", "-o", "solution", "solution.cpp"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    if done.returncode != 0:
        return {"errors": done.stderr[:4000] or f"g++ ended with {done.returncode}"}
    return {"code": base64.b85encode(zlib.compress(Path("solution").read_bytes())).decode()}


def harness_run(program: str, inputs: list[str], tell: bool) -> list[str]:
    """Return what the program prints for each input; with ``tell`` write a dot as each test begins."""
    solution, source, sink = Path("solution"), Path("input.txt"), Path("output.txt")
    solution.write_bytes(zlib.decompress(base64.b85decode(program)))
    solution.chmod(0o700)
    outputs = []
    for text in inputs:
        if tell:
            os.write(1, b".")
        source.write_bytes(text.encode())
        with source.open("rb") as test, sink.open("wb") as answer:
            ended = subprocess.call([solution.absolute()], stdin=test, stdout=answer)  # noqa: S603 - it is in the sandbox
        if ended != 0:
            raise RuntimeError(f"the program {'exited with' if ended > 0 else 'was ended by signal'} {abs(ended)}")
        outputs.append(sink.read_text(encoding="utf-8", errors="replace"))
    return outputs
