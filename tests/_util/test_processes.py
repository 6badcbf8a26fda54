"""Processes that others have started are waited for until they have ended, and no longer."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from flowevolve._util.processes import wait_for_group


@pytest.fixture
def group() -> Iterator[int]:
    """A group of three processes, of which only the first is a child of this one."""
    command = ["sh", "-c", "sleep 1000 & sleep 1000 & echo begun; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as first:
        assert first.stdout is not None
        first.stdout.readline()
        yield first.pid
        with suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)


def living(group: int) -> int:
    """How many processes of a group have not ended."""
    states = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group, *_ = file.read_text().rpartition(")")[2].split()
            states += [state] if int(its_group) == group else []
    return sum(state not in "ZX" for state in states)


def is_waited_for(group: int) -> bool:
    """Whether this process has a pidfd of one of a group."""
    for file in Path("/proc/self/fdinfo").iterdir():
        with suppress(OSError):
            _, pidfd, process = file.read_text().partition("\nPid:")
            if pidfd and os.getpgid(int(process.split()[0])) == group:
                return True
    return False


def test_it_is_waited_until_all_of_a_group_have_ended_even_if_nobody_asks_what_became_of_them(group: int) -> None:
    waiting = Thread(target=wait_for_group, args=(group, 120))
    waiting.start()
    while waiting.is_alive() and not is_waited_for(group):
        waiting.join(0.01)
    assert living(group) == 3
    assert waiting.is_alive()
    os.killpg(group, signal.SIGKILL)
    waiting.join()
    assert living(group) == 0


def test_what_does_not_end_is_not_waited_for_longer_than_was_said(group: int) -> None:
    wait_for_group(group, 0.0)
    assert living(group) == 3
