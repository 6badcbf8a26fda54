"""Runs a program as a script for one test after another in one process, with new standard streams for each test."""

import linecache
import os
import sys
from contextlib import suppress
from types import CodeType, ModuleType


def harness_run(program: str, inputs: list[str], tell: bool) -> list[str]:
    """Return what the program prints for each input. Of earlier tests, only the state of imported modules remains.

    With ``tell`` a dot is written to the real standard output as each test begins, which shows how far the run got.
    """
    code = compile(program, "solution.py", "exec", dont_inherit=True)
    linecache.cache["solution.py"] = (len(program), None, program.splitlines(keepends=True), "solution.py")
    told = os.dup(1)
    source, sink = (os.open(name, os.O_RDWR | os.O_CREAT) for name in (".input", ".output"))
    outputs = []
    for text in inputs:
        if tell:
            os.write(told, b".")
        outputs.append(harness_one(code, text.encode(), source, sink))
    return outputs


def harness_one(code: CodeType, text: bytes, source: int, sink: int) -> str:
    """Return what is printed for one input. A script may also end by exiting with status 0.

    The streams are files with the usual descriptors, since some scripts read ``open(0)`` and some close it.
    """
    for file, descriptor in ((source, 0), (sink, 1)):
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        os.dup2(file, descriptor)
    written = 0
    while written < len(text):
        written += os.pwrite(source, text[written:], written)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - it lasts as long as the test
    sys.stdout = output = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    module = ModuleType("__main__")
    names = module.__dict__
    names.update(exit=sys.exit, quit=sys.exit)
    sys.modules["__main__"] = module
    try:
        exec(code, names)  # noqa: S102 - it is in the sandbox
    except SystemExit as end:
        if end.code not in (None, 0):
            raise RuntimeError(f"the program exited with {end.code!r}") from None
    for stream in (sys.stdout, output):
        with suppress(ValueError):  # the program has closed the stream
            stream.flush()
    names.clear()  # functions and their module refer to each other, so all would stay until garbage is collected
    return os.pread(sink, os.fstat(sink).st_size, 0).decode("utf-8", "replace")
