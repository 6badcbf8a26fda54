"""Programs and whole runs on clusters of real processes, for tests that kill some of these meanwhile."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox import Sandbox
from flowevolve.sandbox.nodes.leases import LeasedEvaluators
from tests.support.evaluators_conformance import begun, processes_of, unique_name

SETTINGS = SandboxSettings(timeout=100, memory_mb=256, preload=())
_SLOW = "read x; sleep 3; echo $x"
_CONFIG = """
seed = 1
[algorithm]
name = "best_of_n"
max_in_flight = 4
[task]
name = "program"
evaluator = "scoring:score"
evaluator_timeout = 60
program = "seed.py"
entry = "solve"
cases = [{n = 1}, {n = 2}, {n = 3}]
[llm]
backend = "sim"
[sim]
profile = "instant"
[budget]
evaluations = 8
[sandbox]
timeout = 60
preload = []
"""
RESULTS = 8 * 3
_SEED = "import time\n\n\ndef solve(n):\n    time.sleep(0.5)\n    width = 10\n    return n * width\n"


async def until(so: Callable[[], bool]) -> None:
    """Wait for what processes of others do."""
    with anyio.fail_after(120):
        while not so():  # noqa: ASYNC110 - they don't tell of themselves
            await anyio.sleep(0.05)


def pids(*of: str) -> list[int]:
    """The processes of this machine whose command line has these in it, but not this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (folder / "cmdline").read_bytes()
            if all(each.encode() in line for each in of) and folder.name != str(os.getpid()):
                found.append(int(folder.name))
    return found


@asynccontextmanager
async def slow_programs(evaluators: LeasedEvaluators, count: int) -> AsyncIterator[str]:
    """While two of so many slow programs run, their name. At the end each has given its own outcome, once."""
    name, results = unique_name(), list[object]()
    sandbox = Sandbox(SETTINGS, evaluators)

    async def one(number: int) -> None:
        results.append((await sandbox.run(_SLOW, command=["sh"], name=name, arguments=[number])).result)

    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(one, number)
        await begun(name, 2)
        yield name
    assert sorted(map(str, results)) == [f"[{number}]" for number in range(count)]
    await until(lambda: processes_of(name) == [])


def write_run(folder: Path, sandbox: str) -> None:
    """The files of a run of `RESULTS` slow programs, whose sandbox has these settings, too."""
    (folder / "config.toml").write_text(_CONFIG + sandbox)
    (folder / "seed.py").write_text(_SEED)
    (folder / "scoring.py").write_text("def score(result, arguments):\n    return float(result)\n")


def flowevolve(folder: Path, *words: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start the command in the folder, whose file ``output`` gets what it says."""
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "flowevolve", *words],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdout=output,
            stderr=output,
        )


async def kill_half_way(folder: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """Begin the folder's run, and kill it when it has some results; returns those."""
    run = flowevolve(folder, "run", "config.toml", "--out", "run", environment=environment)
    try:
        await until(lambda: len(kept(folder)) >= 5 or run.poll() is not None)
        assert run.poll() is None, (folder / "output").read_text()
    finally:
        run.kill()
        run.wait()
    return kept(folder)


async def go_on(folder: Path, *words: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """Go on with the folder's run to its end; returns its results."""
    run = flowevolve(folder, "resume", "run", *words, environment=environment)
    await until(lambda: run.poll() is not None)
    assert run.returncode == 0, (folder / "output").read_text()
    return kept(folder)


def kept(folder: Path) -> list[str]:
    """The cases whose rollouts are in the journal, with their candidates."""
    path = folder / "run" / "journal.sqlite"
    if not path.exists():
        return []
    with suppress(sqlite3.OperationalError):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            rows = connection.execute("SELECT json_extract(data, '$.key') FROM events WHERE kind = 'rollout.kept'")
            return [str(key) for (key,) in rows]
        finally:
            connection.close()
    return []
