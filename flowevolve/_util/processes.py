"""Waiting for the end of processes that are not children of this one, on Linux. These functions block a thread."""

from __future__ import annotations

import os
import select
from contextlib import suppress


def wait_for_end(pidfd: int, seconds: float | None = None) -> None:
    """Wait until the process of a pidfd has ended, even if nobody has collected its exit status yet."""
    ended = select.poll()  # unlike select, it takes descriptors above 1023
    ended.register(pidfd, select.POLLIN)
    ended.poll(None if seconds is None else seconds * 1000)


def wait_for_group(group: int, seconds: float) -> None:
    """Wait for the end of each process in a group that can't grow any more, for each at most ``seconds``."""
    for process in [int(name) for name in os.listdir("/proc") if name.isdecimal()]:  # noqa: PTH208 - names are enough
        with suppress(ProcessLookupError):
            if os.getpgid(process) == group:
                pidfd = os.pidfd_open(process)
                try:
                    wait_for_end(pidfd, seconds)
                finally:
                    os.close(pidfd)
