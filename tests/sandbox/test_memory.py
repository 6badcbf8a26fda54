"""Memory that is measured is all memory: wherever a program keeps its data, they count, or it can't keep them there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flowevolve.sandbox import Outcome, Sandbox, SandboxSettings, measure

pytestmark = pytest.mark.anyio

KEPT = 40
ONE = SandboxSettings(concurrency=1, preload=(), memory_mb=256, disk_mb=48)
SHARED = "import mmap\nf = open('/dev/shm/x', 'w+b'); f.truncate({size}); m = mmap.mmap(f.fileno(), 0)\nm[:] = bytes(len(m))\n"
FILL = "for _ in range(mb): f.write(bytes(2 ** 20))\nf.flush()\n"
COUNTED = {
    "a file": f"f = open('/tmp/x', 'wb')\n{FILL}",
    "a file without a name": f"import os\nf = open('/tmp/x', 'wb')\n{FILL}os.unlink('/tmp/x')\nlook()",
    "a file that was never written to": "import os\nos.posix_fallocate(os.open('/tmp/x', 66), 0, mb * 2 ** 20)",
    "a mapped file that was looked away from": (
        "import mmap\nf = open('/tmp/x', 'w+b'); f.truncate(mb * 2 ** 20); m = mmap.mmap(f.fileno(), 0)\n"
        "for _ in range(mb): m.write(bytes(2 ** 20)); m.madvise(mmap.MADV_DONTNEED)"
    ),
    "a file of a child": (
        "import os\nif os.fork() == 0:\n    f = os.open('/tmp/x', 66)\n    for _ in range(mb): os.write(f, bytes(2 ** 20))\n"
        "    os._exit(0)\nos.wait()"
    ),
}
HELD = {
    "a block": "x = b'1' * (mb * 2 ** 20)\nlook()",
    "a block of a child": "import os\nif os.fork() == 0:\n    x = b'1' * (mb * 2 ** 20)\n    look(); os._exit(0)\nos.wait()",
}
LOOK = "import time\nmb = {mb}\ndef look():\n    until = time.process_time() + 0.05\n    while time.process_time() < until: pass\n"
"""While a program looks, its processor time passes, and so the watch has its turn."""


def without_main_thread(source: str) -> str:
    """A program whose main thread has ended when a thread of it runs the source."""
    return (
        "import ctypes, os, threading\ndef rest():\n    while open(f'/proc/{os.getpid()}/stat').read().split()[2] != 'Z': pass\n"
        f"    exec({source!r}, globals())\n    os._exit(0)\nthreading.Thread(target=rest).start()\n"
        "ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)"
    )


async def peak(sandbox: Sandbox, source: str, mb: int) -> float:
    (outcome,) = await sandbox.run_pinned(LOOK.format(mb=mb) + source, sample_seconds=0.002)
    assert outcome.status == "ok", outcome
    return outcome.peak_mb


@pytest.mark.parametrize("place", COUNTED)
async def test_files_count(place: str) -> None:
    async with Sandbox(ONE) as sandbox:
        with_it = await peak(sandbox, COUNTED[place], KEPT)
    assert with_it >= KEPT


@pytest.mark.parametrize("place", HELD)
async def test_memory_that_is_held_counts(place: str) -> None:
    async with Sandbox(ONE) as sandbox:
        without = await peak(sandbox, HELD[place], 1)
        with_it = await peak(sandbox, HELD[place], KEPT)
    assert with_it > without + KEPT * 0.9


@pytest.mark.parametrize(
    "source",
    [HELD["a block"], COUNTED["a file"] + "look()", without_main_thread(HELD["a block"])],
    ids=["held", "in a file", "held when the main thread has ended"],
)
async def test_a_score_is_not_better_for_where_memory_is(source: str) -> None:
    async with Sandbox(ONE) as sandbox:
        measurement = await measure(sandbox, LOOK.format(mb=KEPT) + source, runs=3)
    for outcome in measurement.outcomes:
        assert outcome.status == "ok", outcome
        assert max(memory for _, memory in outcome.samples) > KEPT


@pytest.mark.parametrize("in_child", [str, without_main_thread], ids=["all threads there", "main threads ended"])
async def test_shared_memory_counts_once(in_child: Callable[[str], str]) -> None:
    """Five processes that all have it in their tables would take 50 MB else."""
    child = in_child("sum(m[::4096]); look(); os._exit(0)").replace("\n", "\n        ")
    source = f"import os\nfor _ in range(4):\n    if os.fork() == 0:\n        {child}\nfor _ in range(4): os.wait()"
    async with Sandbox(ONE) as sandbox:
        base = await peak(sandbox, SHARED.format(size=4096) + source, 0)
        whole = await peak(sandbox, SHARED.format(size=10 * 2**20) + source, 0)
    assert base + 5 < whole < base + 30


async def test_sockets_count_as_if_they_were_full() -> None:
    source = "import socket\npairs = [socket.socketpair() for _ in range(20)]\nlook()"
    async with Sandbox(ONE) as sandbox:
        assert await peak(sandbox, source, 0) > 40 * 0.4 + await peak(sandbox, "look()", 0) * 0.9


async def test_sockets_in_many_processes_are_more_memory_than_allowed() -> None:
    source = (
        "import os, socket, time\nfor _ in range(4): os.fork()\nheld = []\nwhile True:\n"
        "    try: held.append(socket.socketpair())\n    except OSError: time.sleep(100)"
    )
    async with Sandbox(ONE) as sandbox:
        assert (await sandbox.run(source, timeout=60)).status == "memory"


async def test_sockets_that_an_earlier_program_left_do_not_count() -> None:
    """Those that were sent to each other stay until the kernel collects them."""
    leave = (
        "import array, socket\ntry:\n    while True:\n        pair = socket.socketpair()\n        for end in pair:\n"
        "            both = array.array('i', [each.fileno() for each in pair])\n"
        "            end.sendmsg([b'1'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, both)])\n"
        "        for end in pair: end.close()\nexcept OSError: pass"
    )
    async with Sandbox(ONE) as sandbox:
        before = await peak(sandbox, "look()", 0)
        for _ in range(4):
            left = await sandbox.run(leave)
            assert left.status == "ok", left
            assert await peak(sandbox, "look()", 0) < before + 5


async def test_what_was_written_to_the_folder_is_within_the_limit_of_memory() -> None:
    settings = SandboxSettings(concurrency=1, preload=(), memory_mb=64, disk_mb=256)
    async with Sandbox(settings) as sandbox:
        outcome = await sandbox.run(LOOK.format(mb=KEPT) + COUNTED["a file"] + "look()")
        more = await sandbox.run(
            "import time\nwith open('/tmp/x', 'wb') as f:\n    for _ in range(160): f.write(bytes(2 ** 20))\ntime.sleep(1000)",
            timeout=60,
        )
    assert (outcome.status, more.status) == ("ok", "memory")


async def test_little_can_be_kept_in_pipes_which_do_not_count() -> None:
    source = (
        "import os\nresult = 0\ntry:\n    while True:\n        _, pipe = os.pipe(); os.set_blocking(pipe, False)\n"
        "        try:\n            while True: result += os.write(pipe, bytes(4096))\n        except BlockingIOError: pass\n"
        "except OSError: pass"
    )
    async with Sandbox(ONE) as sandbox:
        (outcome,) = await sandbox.run_pinned(source)
    assert isinstance(outcome.result, int)
    assert 0 < outcome.result <= 2 * 2**20


async def test_a_measured_program_has_few_open_files() -> None:
    source = "import resource\nresult = resource.getrlimit(resource.RLIMIT_NOFILE)[0]"
    outcomes: list[Outcome] = []
    async with Sandbox(ONE) as sandbox:
        outcomes += await sandbox.run_pinned(source)
        outcomes.append(await sandbox.run(source))
    assert [outcome.result for outcome in outcomes] == [64, 256]


async def test_a_program_may_compute_for_as_long_as_it_may_run_and_no_longer() -> None:
    """On each of its processes at once, and a second more: what its supervisor counts ends it before."""
    source = "import resource\nresult = list(resource.getrlimit(resource.RLIMIT_CPU))"
    async with Sandbox(ONE) as sandbox:
        outcome = await sandbox.run(source, timeout=7)
    seconds = 7 * max(1, ONE.processes) + 1
    assert outcome.result == [seconds, seconds]
