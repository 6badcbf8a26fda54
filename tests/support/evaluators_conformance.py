"""What all evaluators keep to, wherever programs run: a class of tests for each kind inherits these."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import beside
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.problems.folders.catalog import folder_problem
from flowevolve.programs.evaluator import with_readable_evaluator, without_evaluator
from flowevolve.sandbox import Outcome, Sandbox, SandboxPair
from flowevolve.sandbox.evaluators import Evaluators, TrustedCall
from tests.support.folder_samples import OPENEVOLVE, write

ADD = "def add(a, b=1):\n    print('adding')\n    return {'sum': a + b}\n"
FOREVER = "while True: pass"
LONG_SECONDS = 600.0
FUNCTIONS = """
import os, subprocess, sys, time

CALLS = []


def add(a, b):
    print("to nobody in particular")
    os.write(1, b'{"result": "not this"}')
    CALLS.append(a)
    return {"sum": a + b, "calls": len(CALLS), "process": os.getpid()}


def fail(why):
    raise ValueError(why)


def hang(name):
    subprocess.Popen(["sh", "-c", f": {name}; sleep 1000; :"])
    time.sleep(1000)


def vanish():
    os._exit(3)
"""
"""A module of a user's own."""


def trusted_functions(folder: Path) -> Callable[..., TrustedCall]:
    """Makes calls of `FUNCTIONS`, which are in this folder and nowhere on Python's path."""
    module = f"functions_{uuid4().hex}"
    (folder / f"{module}.py").write_text(FUNCTIONS)

    def call(function: str, *arguments: JSON, timeout: float = LONG_SECONDS) -> TrustedCall:
        return TrustedCall(f"{module}:{function}", arguments, timeout, str(folder))

    return call


def unique_name() -> str:
    """A name for a file of a program, by which its processes are found."""
    return f"program-{uuid4().hex}.sh"


def processes_of(name: str) -> list[str]:
    """The processes on this machine that run the file of this name."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if name.encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
    return found


async def begun(name: str, least: int) -> None:
    """Wait until so many processes run it."""
    with anyio.fail_after(120):
        while len(processes_of(name)) < least:  # noqa: ASYNC110 - processes don't tell of themselves
            await anyio.sleep(0.01)


class EvaluatorsConformance:
    settings = SandboxSettings(concurrency=2, timeout=20, memory_mb=256, preload=())

    def evaluators(self, settings: SandboxSettings) -> Evaluators:
        """Evaluators with two slots that have not been entered."""
        raise NotImplementedError

    @asynccontextmanager
    async def sandbox(self, settings: SandboxSettings | None = None) -> AsyncIterator[tuple[Sandbox, Evaluators]]:
        wanted = settings or self.settings
        async with self.evaluators(wanted) as evaluators:
            yield Sandbox(wanted, evaluators), evaluators

    async def test_a_program_gives_plain_data(self) -> None:
        async with self.sandbox() as (sandbox, _):
            by_name = await sandbox.run(ADD, call="add", arguments={"a": 1, "b": 41})
            by_place = await sandbox.run(ADD, call="add", arguments=[1])
            shell = await sandbox.run("read x; echo $x", command=["sh"], name="a.sh", arguments=[20])
        assert (by_name.status, by_name.result, by_name.stdout) == ("ok", {"sum": 42}, "adding\n")
        assert by_place.result == {"sum": 2}
        assert shell.result == [20]

    async def test_each_of_many_has_its_own_outcome(self) -> None:
        outcomes: dict[int, Outcome] = {}

        async def one(number: int) -> None:
            outcomes[number] = await sandbox.run(ADD, call="add", arguments=[number])

        async with self.sandbox() as (sandbox, _), anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(one, number)
        assert {number: outcome.result for number, outcome in outcomes.items()} == {
            n: {"sum": n + 1} for n in range(40)
        }

    async def test_how_a_program_failed_is_told(self) -> None:
        async with self.sandbox() as (sandbox, _):
            raised = await sandbox.run("raise ValueError('so it is')")
            late = await sandbox.run(FOREVER, timeout=0.2)
            big = await sandbox.run("x = bytearray(2**30)", memory_mb=100)
            nothing = await sandbox.run("x = 1", call="f")
        assert raised.status == "error"
        assert "so it is" in raised.stderr
        assert [late.status, big.status, nothing.status] == ["timeout", "memory", "error"]

    async def test_large_texts_and_odd_characters_arrive(self) -> None:
        text = "ä🙂\x00" * 100_000
        async with self.sandbox() as (sandbox, _):
            outcome = await sandbox.run("def same(x): return [len(x), x[-3:]]", call="same", arguments=[text])
        assert outcome.result == [300_000, "ä🙂\x00"]

    async def test_a_cancelled_program_is_killed_and_its_slot_is_free(self) -> None:
        name = unique_name()
        settings = self.settings.model_copy(update={"timeout": LONG_SECONDS})
        async with self.sandbox(settings) as (sandbox, evaluators):
            async with anyio.create_task_group() as tasks:
                for _ in range(3 * evaluators.capacity):  # some run, and some wait
                    tasks.start_soon(lambda: sandbox.run("sleep 1000 & sleep 1000", command=["sh"], name=name))
                await begun(name, evaluators.capacity)
                tasks.cancel_scope.cancel()
            assert processes_of(name) == []
            with anyio.fail_after(LONG_SECONDS / 2):
                outcome = await sandbox.run(ADD, call="add", arguments=[1])
            assert outcome.result == {"sum": 2}

    async def test_nothing_is_left_when_the_block_ends(self) -> None:
        name = unique_name()
        settings = self.settings.model_copy(update={"timeout": LONG_SECONDS})

        async def fail() -> None:
            async with self.sandbox(settings) as (sandbox, _), beside() as tasks:
                tasks.start_soon(lambda: sandbox.run("sleep 1000 & sleep 1000", command=["sh"], name=name))
                await begun(name, 1)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert processes_of(name) == []

    async def test_capacity_is_told(self) -> None:
        async with self.sandbox() as (_, evaluators):
            assert evaluators.capacity == 2

    async def test_a_pinned_program_is_run_several_times_until_it_fails(self) -> None:
        async with self.sandbox() as (sandbox, _):
            outcomes = await sandbox.run_pinned(ADD, call="add", arguments=[1], runs=3, sample_seconds=0.002)
            failed = await sandbox.run_pinned("raise ValueError", runs=3)
        assert [outcome.result for outcome in outcomes] == [{"sum": 2}] * 3
        assert all(outcome.samples for outcome in outcomes)
        assert [outcome.status for outcome in failed] == ["error"]

    async def test_an_evaluator_has_a_sandbox_of_its_own_beside_the_program(self, tmp_path: Path) -> None:
        problem = folder_problem(write(tmp_path / "folder", OPENEVOLVE))
        seeing = with_readable_evaluator(self.settings, problem)
        async with self.evaluators(seeing) as evaluators:
            programs = Sandbox(without_evaluator(seeing, problem), evaluators)
            pair = SandboxPair(Sandbox(seeing, evaluators), programs)
            judged = await problem.judged(problem.source, pair)
        assert judged.verdict.failure is None

    async def test_what_can_not_work_fails_at_the_start(self) -> None:
        settings = self.settings.model_copy(update={"preload": ("json",), "readable": (Path("/nowhere"),)})
        with pytest.raises(InputError, match="/nowhere"):
            async with self.evaluators(settings):
                pass

    async def test_a_trusted_function_is_called_in_a_process_of_its_own(self, tmp_path: Path) -> None:
        call = trusted_functions(tmp_path)
        async with self.sandbox() as (_, evaluators):
            (first,) = await evaluators.run(call("add", 1, 41))
            (failed,) = await evaluators.run(call("fail", "so it is"))
            (unknown,) = await evaluators.run(call("nothing"))
        assert isinstance(first.result, dict)
        assert (first.status, first.result["sum"]) == ("ok", 42)
        assert first.result["process"] != os.getpid()
        assert (failed.status, failed.stderr.splitlines()[-1]) == ("error", "ValueError: so it is")
        assert (unknown.status, "has no attribute 'nothing'" in unknown.stderr) == ("error", True)

    async def test_a_trusted_function_that_hangs_or_vanishes_is_told_and_leaves_nothing(self, tmp_path: Path) -> None:
        name, call = unique_name(), trusted_functions(tmp_path)
        async with self.sandbox() as (_, evaluators):
            (late,) = await evaluators.run(call("hang", name, timeout=3.0))
            assert processes_of(name) == []
            (gone,) = await evaluators.run(call("vanish"))
            (next_one,) = await evaluators.run(call("add", 1, 2))
        assert [late.status, gone.status, next_one.status] == ["timeout", "killed", "ok"]

    async def test_a_cancelled_trusted_function_is_killed_with_what_it_started(self, tmp_path: Path) -> None:
        name, call = unique_name(), trusted_functions(tmp_path)
        async with self.sandbox() as (_, evaluators):
            async with anyio.create_task_group() as tasks:
                for _ in range(2 * evaluators.capacity):  # some run, and some wait
                    tasks.start_soon(evaluators.run, call("hang", name))
                await begun(name, evaluators.capacity)
                tasks.cancel_scope.cancel()
            assert processes_of(name) == []
            (after,) = await evaluators.run(call("add", 1, 2))
        assert after.status == "ok"
