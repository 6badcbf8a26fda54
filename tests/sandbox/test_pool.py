"""The sandbox as stages use it."""

from __future__ import annotations

import errno
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.core.sandbox_settings import MOST_MB, MOST_PROCESSES
from flowevolve.sandbox import Outcome, Sandbox, SandboxSettings
from flowevolve.sandbox.opening import open_evaluators
from tests.sandbox.conftest import left_over
from tests.support.evaluators_conformance import trusted_functions

pytestmark = pytest.mark.anyio

ONE = SandboxSettings(concurrency=1, preload=())
ADD = "def add(a, b=1):\n    print('adding')\n    return {'sum': a + b}\n"


async def test_a_function_is_called_and_returns_data() -> None:
    async with Sandbox(ONE) as sandbox:
        by_name = await sandbox.run(ADD, call="add", arguments={"a": 1, "b": 41})
        by_place = await sandbox.run(ADD, call="add", arguments=[1])
    assert (by_name.status, by_name.result, by_name.stdout) == ("ok", {"sum": 42}, "adding\n")
    assert by_place.result == {"sum": 2}
    assert by_name.cpu_seconds > 0
    assert 1 < by_name.peak_mb < 100


async def test_a_script_leaves_its_result_in_a_global() -> None:
    async with Sandbox(ONE) as sandbox:
        left = await sandbox.run("import sys\nresult = [__name__, __file__, len(sys.argv)]")
        nothing = await sandbox.run("x = 1")
    assert left.result == ["__main__", "/tmp/program.py", 1]
    assert (nothing.status, nothing.result) == ("ok", None)


@pytest.mark.parametrize(
    ("source", "call", "status", "says"),
    [
        ("def f(:", None, "error", "SyntaxError"),
        ("raise ValueError('so it is')", None, "error", "ValueError: so it is"),
        ("import sys; sys.exit(3)", None, "error", "it ended with exit code 3"),
        ("import sys; sys.exit('no use')", None, "error", "no use"),
        ("import sys; sys.exit(0)", None, "ok", ""),
        ("import sys; sys.exit(0)", "f", "error", "ended without a result"),
        ("x = 1", "f", "error", "KeyError: 'f'"),
        ("def f(): return object()", "f", "error", "not JSON serializable"),
        ("raise MemoryError", None, "memory", "MemoryError"),
        ("raise PermissionError(1, 'no')", None, "denied", "PermissionError"),
    ],
)
async def test_how_a_program_ended_is_told(source: str, call: str | None, status: str, says: str) -> None:
    async with Sandbox(ONE) as sandbox:
        outcome = await sandbox.run(source, call=call)
    assert outcome.status == status
    assert says in outcome.stderr
    assert "candidate.py" not in outcome.stderr  # the program's frames alone


async def test_other_languages_read_arguments_and_print_their_result() -> None:
    async with Sandbox(ONE) as sandbox:
        sums = await sandbox.run("read x; echo $x; echo on >&2", command=["sh"], name="sum.sh", arguments=[20, 22])
        words = await sandbox.run("echo no data", command=["sh"], name="say.sh")
        fails = await sandbox.run("exit 3", command=["sh"], name="fail.sh")
        nobody = await sandbox.run("", command=["no-such-language"])
    assert (sums.status, sums.result, sums.stderr) == ("ok", [20, 22], "on\n")
    assert (words.status, words.result, words.stdout) == ("ok", None, "no data\n")
    assert fails.status == "error"
    assert nobody.status == "error"
    assert "no-such-language" in nobody.stderr


async def test_programs_find_what_there_is_of_etc() -> None:
    async with Sandbox(ONE) as sandbox:
        outcome = await sandbox.run(
            "import os\nresult = [os.listdir('/etc'), len(open('/etc/ld.so.cache', 'rb').read())]"
        )
    assert isinstance(outcome.result, list), outcome
    names, size = outcome.result
    assert isinstance(names, list)
    assert "ld.so.cache" in names
    assert "passwd" not in names
    assert isinstance(size, int)
    assert size > 0


async def test_every_program_is_the_first_one_there() -> None:
    spoil = "import sys, json, os\nopen('left', 'w').write('x')\njson.dumps = None\nsys.modules['math'] = None\nos.environ['A'] = 'b'"
    look = "import math, os, json\nresult = [os.listdir('.'), 'A' in os.environ, math.pi > 3, json.dumps(1)]"
    async with Sandbox(ONE) as sandbox:
        await sandbox.run(spoil)
        outcome = await sandbox.run(look)
    assert outcome.result == [["program.py"], False, True, "1"]


async def test_programs_draw_numbers_of_their_own_and_sets_keep_their_order() -> None:
    source = "import random\nresult = [random.random(), list({'a', 'b', 'c', 'd', 'e'})]"
    results = []
    async with Sandbox(ONE) as sandbox:
        for _ in range(3):
            outcome = await sandbox.run(source)
            assert isinstance(outcome.result, list)
            results.append(outcome.result)
    assert len({str(result[0]) for result in results}) == 3
    assert len({str(result[1]) for result in results}) == 1


async def test_as_many_run_at_a_time_as_allowed() -> None:
    """Two that wait for each other's file could only meet if they shared one; here each sees itself alone, side by side."""
    outcomes: list[Outcome] = []
    source = "import os\nresult = [os.listdir('/tmp'), [p for p in os.listdir('/proc') if p.isdigit()]]"
    async with Sandbox(SandboxSettings(concurrency=2, preload=())) as sandbox, anyio.create_task_group() as tasks:

        async def one() -> None:
            outcomes.append(await sandbox.run(source))

        for _ in range(6):
            tasks.start_soon(one)
    assert [outcome.result for outcome in outcomes] == [[["program.py"], ["1", "2"]]] * 6


async def test_cancelling_kills_the_program_and_the_sandbox_goes_on() -> None:
    async with Sandbox(ONE) as sandbox:
        with anyio.move_on_after(0.5) as patience:
            await sandbox.run(
                "import os\nos.fork(); os.setsid() if os.getpid() != 2 else 0\nwhile True: pass", timeout=60
            )
        assert patience.cancelled_caught
        assert left_over() == []
        assert (await sandbox.run("result = 1")).result == 1


async def test_nothing_is_left_when_the_block_ends_with_an_error() -> None:
    async def breaks() -> None:
        async with Sandbox(ONE) as sandbox, anyio.create_task_group() as tasks:
            tasks.start_soon(sandbox.run, "while True: pass")
            await anyio.wait_all_tasks_blocked()
            raise ValueError

    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        await breaks()
    assert left_over() == []


async def test_a_sandbox_that_died_is_no_fault_of_the_next_program() -> None:
    others = _children(os.getpid())
    async with Sandbox(ONE) as sandbox:
        for child in set(_children(os.getpid())).difference(others):
            for first in _children(child):
                os.kill(first, signal.SIGKILL)
        outcome = await sandbox.run("result = 1")
        after = await sandbox.run("result = 2")
    assert (outcome.status, outcome.result, after.result) == ("ok", 1, 2)


async def test_it_ends_in_an_engine_with_many_open_files() -> None:
    with ExitStack() as files:
        for _ in range(1100):
            files.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        async with Sandbox(ONE) as sandbox:
            assert (await sandbox.run("result = 1")).result == 1


async def test_no_time_at_all_is_a_time_out() -> None:
    async with Sandbox(ONE) as sandbox:
        assert (await sandbox.run("result = 1", timeout=1e-6)).status == "timeout"


async def test_killed_with_all_its_processes_when_the_engine_is_killed(tmp_path: Path) -> None:
    engine = (
        "import anyio, sys\nfrom flowevolve.sandbox import Sandbox, SandboxSettings\n"
        "async def main():\n    async with Sandbox(SandboxSettings(preload=())) as sandbox:\n"
        "        print('up', flush=True)\n        await sandbox.run('import time; time.sleep(1000)', timeout=1000)\n"
        "anyio.run(main)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = await anyio.open_process([sys.executable, "-c", engine], env=environment, stderr=None)
    assert process.stdout is not None
    assert (await process.stdout.receive()).startswith(b"up")
    children = _children(process.pid)
    assert children
    handles = [os.pidfd_open(child) for child in children]
    process.kill()
    await process.wait()
    with anyio.fail_after(30):
        for handle in handles:  # readable when it has ended
            await anyio.wait_readable(handle)
            os.close(handle)
    await process.aclose()


def _children(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def test_a_virtual_clock_waits_for_programs() -> None:
    async def main() -> tuple[Outcome, float]:
        async with Sandbox(ONE) as sandbox:
            outcome = await sandbox.run("import time\ntime.sleep(0.2)\nresult = 1", timeout=20)
            return outcome, anyio.current_time()

    outcome, ended = clock.run(main, clock="virtual")
    assert outcome.result == 1
    assert ended < 0.01


async def test_limits_alone_when_the_user_says_so() -> None:
    async with Sandbox(
        SandboxSettings(isolation="limits", concurrency=1, preload=(), memory_mb=64, processes=8)
    ) as sandbox:
        fine = await sandbox.run(ADD, call="add", arguments={"a": 1})
        late = await sandbox.run("import os\nos.setsid() if os.fork() == 0 else 0\nwhile True: pass", timeout=0.5)
        large = await sandbox.run("x = bytearray(2 ** 30)")
        bomb = await sandbox.run("import os\nfor _ in range(6): os.fork()\nwhile True: pass")
        daemon = await sandbox.run(
            "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(1000)\nresult = os.getcwd()"
        )
        deep = await sandbox.run(
            "import os\nresult = os.getcwd()\nfor _ in range(2000):\n    os.mkdir('d'); os.chdir('d')"
        )
        online = await sandbox.run("import socket\nsocket.socket()")
        after = await sandbox.run(ADD, call="add", arguments={"a": 1})
    statuses = [each.status for each in (fine, late, large, bomb, daemon, deep, online, after)]
    assert statuses == ["ok", "timeout", "memory", "killed", "ok", "ok", "denied", "ok"]
    for folder in (daemon.result, deep.result):
        assert isinstance(folder, str)
        assert not await anyio.Path(folder).exists()
    assert fine.result == after.result == {"sum": 2}


async def test_what_a_killed_engine_left_is_swept_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = (
        "import anyio, sys\nfrom flowevolve.sandbox import Sandbox, SandboxSettings\n"
        "program = 'import os, time; os.mkdir(\"up\"); time.sleep(1000)'\n"
        "async def main():\n    async with Sandbox(SandboxSettings(isolation='limits', preload=())) as sandbox:\n"
        "        await sandbox.run(program, timeout=1000)\nanyio.run(main)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)}
    async with await anyio.open_process([sys.executable, "-c", engine], env=environment, stderr=None) as process:
        with anyio.fail_after(60):
            while not (left := [path async for path in anyio.Path(tmp_path).glob("*/program-*/up")]):
                await anyio.lowlevel.checkpoint()
        process.kill()
    async with Sandbox(ONE):
        assert not await left[0].parent.exists()


async def test_without_bubblewrap_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"apt-get install bubblewrap.*limits.*read your files") as error:
        await Sandbox(ONE).__aenter__()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("patched", "says"), [("flowevolve.sandbox.isolation.platform.machine", "riscv64"), ("sys.maxsize", "64-bit")]
)
async def test_a_machine_without_a_filter_of_its_own_is_refused(
    monkeypatch: pytest.MonkeyPatch, patched: str, says: str
) -> None:
    monkeypatch.setattr(patched, 2**31 - 1 if patched == "sys.maxsize" else lambda: "riscv64")
    with pytest.raises(InputError, match=says):
        await Sandbox(ONE).__aenter__()


async def test_a_bubblewrap_that_does_not_work_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(InputError, match=r"can't be started here: No permissions to create new namespace"):
        await Sandbox(ONE).__aenter__()


async def test_a_sandbox_that_is_not_ready_in_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowevolve.sandbox.worker.START_SECONDS", 0.001)
    with pytest.raises(InputError, match=r"it was not ready after 0.001 s; the machine may be too busy"):
        await Sandbox(ONE).__aenter__()


async def test_where_no_process_can_be_started_it_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    call = trusted_functions(tmp_path)("add", 1, 2)
    async with open_evaluators(ONE) as evaluators:
        for name, value, says in (
            ("sys.executable", "/nowhere/python", "'/nowhere/python'"),
            ("subprocess.Popen", refuse, "temporarily unavailable"),
        ):
            with monkeypatch.context() as patched:
                patched.setattr(name, value)
                with pytest.raises(InputError, match=f"{says}.*ulimit"):
                    await evaluators.run(call)
        (outcome,) = await evaluators.run(call)
        assert outcome.status == "ok"
    monkeypatch.setattr("subprocess.Popen", refuse)
    with pytest.raises(InputError, match=r"temporarily unavailable.*ulimit"):
        await Sandbox(ONE).__aenter__()


async def test_names_in_other_folders_and_limits_of_nothing_are_refused() -> None:
    async with Sandbox(ONE) as sandbox:
        with pytest.raises(InputError, match="not a name for a program's file"):
            await sandbox.run("", name="../x.py")
        with pytest.raises(InputError, match="timeout is 0 s, but has to be above 0"):
            await sandbox.run("", timeout=0)
        with pytest.raises(InputError, match="has to be from 1 to 16777216"):
            await sandbox.run("", memory_mb=10**12)


@pytest.mark.parametrize("setting", ["memory_mb", "disk_mb", "processes"])
def test_limits_that_no_kernel_has_are_refused(setting: str) -> None:
    with pytest.raises(ValueError, match=setting):
        SandboxSettings.model_validate({setting: 10**12})


async def test_the_greatest_limits_work() -> None:
    settings = {**ONE.model_dump(), "memory_mb": MOST_MB, "disk_mb": MOST_MB, "processes": MOST_PROCESSES}
    async with Sandbox(SandboxSettings.model_validate(settings)) as sandbox:
        assert (await sandbox.run("result = 1")).result == 1
