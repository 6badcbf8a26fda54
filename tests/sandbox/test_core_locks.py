"""Cores among processes: locks on files."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from flowevolve._util.errors import InputError
from flowevolve.sandbox.cores import CoreLock, Cores, acquire_any

HOLDER = """
import sys
from pathlib import Path
from flowevolve.sandbox.cores import CoreLock
print(CoreLock(Path(sys.argv[1]), 0).try_acquire(), flush=True)
sys.stdin.read()
"""


def free(folder: Path, core: int = 0) -> bool:
    """Whether anybody could have the core at once."""
    lock = CoreLock(folder, core)
    try:
        return lock.try_acquire()
    finally:
        lock.close()


def test_two_who_measure_take_different_cores(tmp_path: Path) -> None:
    one, other = Cores([0, 1], tmp_path), Cores([0, 1], tmp_path)
    with one.lent(Event()) as first, other.lent(Event()) as second:
        assert {first, second} == {0, 1}
    with other.lent(Event()) as again:
        assert again == 0


def test_who_finds_no_core_waits_for_one_and_may_leave(tmp_path: Path) -> None:
    one, other = Cores([3], tmp_path), Cores([3], tmp_path)
    with ThreadPoolExecutor(1) as threads:
        with one.lent(Event()):
            give_up = Event()
            leaving = threads.submit(core_of, other, give_up)
            give_up.set()
            assert leaving.result() is None
            staying = threads.submit(core_of, other, Event())
            until_queued(tmp_path, 3)
            assert not staying.done()
        assert staying.result() == 3
    assert free(tmp_path, 3)


def test_who_waits_has_whichever_core_is_free_first(tmp_path: Path) -> None:
    one, other = Cores([0, 1], tmp_path), Cores([0, 1], tmp_path)
    with ThreadPoolExecutor(1) as threads, one.lent(Event()) as first:
        assert first == 0
        with one.lent(Event()):
            waiting = threads.submit(core_of, other, Event())
            until_queued(tmp_path, 0)
            assert not waiting.done()
        assert waiting.result() == 1
    assert free(tmp_path)
    assert free(tmp_path, 1)


def core_of(cores: Cores, give_up: Event) -> int | None:
    with cores.lent(give_up) as core:
        return core


def until_queued(folder: Path, core: int) -> None:
    """Return when somebody waits for the core."""
    lock = CoreLock(folder, core)
    while lock.join_queue():
        lock.close()
        lock = CoreLock(folder, core)
    lock.close()


def test_who_had_it_waits_behind_who_waits(tmp_path: Path) -> None:
    held, waiting = CoreLock(tmp_path, 0), CoreLock(tmp_path, 0)
    assert held.try_acquire()
    assert waiting.join_queue()
    held.close()
    assert not free(tmp_path)
    assert acquire_any([waiting], Event()) is waiting
    assert not free(tmp_path)
    waiting.close()
    assert free(tmp_path)


def test_who_gives_up_has_nothing(tmp_path: Path) -> None:
    held, waiting, give_up = CoreLock(tmp_path, 0), CoreLock(tmp_path, 0), Event()
    assert held.try_acquire()
    give_up.set()
    assert acquire_any([waiting], give_up) is None
    waiting.close()
    held.close()
    assert free(tmp_path)


def test_a_core_is_free_again_when_its_holder_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert not free(tmp_path)
        assert free(tmp_path, 1)
        holder.kill()
    assert free(tmp_path)


def test_a_folder_that_can_not_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InputError, match=r"file can't be used .*TMPDIR"):
        CoreLock(file, 0)
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(InputError, match="somebody else"):
        CoreLock(tmp_path, 0)
