"""The lock that keeps a run directory to one process."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.journal.lock import LOCK, Lock, is_held, patient_lock
from tests.support.full_disk import full_disk

fcntl = pytest.importorskip("fcntl")


def test_a_directory_is_one_process_s_until_it_is_given_back(tmp_path: Path) -> None:
    assert not is_held(tmp_path)
    lock = Lock(tmp_path)
    assert is_held(tmp_path)
    with pytest.raises(
        InputError, match=f"process {os.getpid()} on {socket.gethostname()} is at work in this run directory"
    ):
        Lock(tmp_path)
    lock.release()
    lock.release()
    assert not is_held(tmp_path)
    Lock(tmp_path).release()


def test_somebody_who_only_looks_whether_it_is_held_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = (tmp_path / LOCK).open("w")
    fcntl.flock(looking, fcntl.LOCK_SH)  # as `is_held` does, for a moment
    monkeypatch.setattr(time, "sleep", lambda seconds: looking.close())
    lock = patient_lock(tmp_path)
    assert is_held(tmp_path)
    lock.release()


def test_a_process_that_has_gone_is_not_named(tmp_path: Path) -> None:
    Lock(tmp_path).release()
    with (tmp_path / LOCK).open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="process unknown is at work"):
            Lock(tmp_path)


def test_a_lock_that_finds_no_space_is_one_line_and_is_not_held(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(InputError, match=r"lock can't be written: .*too large"):
        Lock(tmp_path)
    assert not is_held(tmp_path)
    Lock(tmp_path).release()
