"""Makes the process that imports it look like one on Windows, as far as that goes: modules and calls that only Linux or
POSIX has are gone. Run as a script it evolves a prompt, goes on with the run, and is refused programs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import numpy as np  # noqa: F401  it asks for the kernel as it is loaded, where it runs on Linux

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "syslog", "crypt")
CALLS = (
    "fork", "forkpty", "getuid", "geteuid", "getgid", "getpgid", "killpg", "setsid", "setpgid", "sched_getaffinity",
    "sysconf", "uname", "pidfd_open", "memfd_create", "getloadavg", "statvfs", "mkfifo", "fchmod", "chown",
)  # fmt: skip
SIGNALS = ("SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGCHLD", "SIGPIPE", "SIGSYS", "pidfd_send_signal")


class Absent:
    """Finds that a module is not there."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def leave_linux() -> list[int]:
    """Returns the places in files that are locked from now on."""
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Absent())
    for module, names in ((os, CALLS), (signal, SIGNALS)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)

    def no_handlers(self: object, *given: object) -> None:
        raise NotImplementedError

    asyncio.SelectorEventLoop.add_signal_handler = no_handlers  # type: ignore[assignment, method-assign]
    opened = os.open

    def no_directories(path: str, flags: int, mode: int = 0o777, **given: int) -> int:
        if os.path.isdir(path):  # noqa: PTH112
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode, **given)

    os.open = no_directories  # type: ignore[assignment]
    locked: list[int] = []
    windows = ModuleType("msvcrt")
    windows.LK_NBLCK = 2  # type: ignore[attr-defined]
    windows.locking = lambda file, mode, size: locked.append(os.lseek(file, 0, os.SEEK_CUR))  # type: ignore[attr-defined]
    sys.modules["msvcrt"] = windows
    return locked


async def _answer(row: Mapping[str, object], output: str) -> float:
    return min(1.0, len(output) / 1000)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main(directory: Path) -> None:
    locked = leave_linux()
    import flowevolve as fe  # noqa: PLC0415 - there, not here
    from flowevolve import clock  # noqa: PLC0415

    rows = [{"question": f"How many are {number} and {number}?", "answer": str(2 * number)} for number in range(12)]
    result = fe.optimize(
        prompt="Answer.", train=rows[:6], val=rows[6:], input="{question}", metric=_answer, llm="simulated",
        budget=fe.Budget(proposals=2), clock="virtual", out=directory,
    )  # fmt: skip
    say(f"best: {result.best is not None}, locked: {len(locked)}")
    sys.platform = "win32"
    config = fe.Config.model_validate(
        {
            "algorithm": {"name": "best_of_n"},
            "task": {"name": "program", "problem": "circle_packing_26"},
            "budget": {"proposals": 2},
            "clock": "virtual",
        }
    )
    try:
        clock.run(partial(fe.run, config), clock="virtual")
    except fe.InputError as error:
        say(str(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
