"""One sandbox for many programs, in an event loop of its own, and what is left of programs afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio.from_thread
import pytest

from flowevolve.sandbox import Outcome, Sandbox, SandboxSettings


class Cell:
    """A sandbox to be used from tests that are not async."""

    def __init__(self, sandbox: Sandbox, portal: anyio.from_thread.BlockingPortal) -> None:
        self._sandbox = sandbox
        self._portal = portal

    def run(self, source: str, *, timeout: float = 10.0, command: tuple[str, ...] | None = None) -> Outcome:
        return self._portal.call(lambda: self._sandbox.run(source, timeout=timeout, command=command))


@pytest.fixture(scope="session")
def cell() -> Iterator[Cell]:
    settings = SandboxSettings(memory_mb=256, disk_mb=16, concurrency=1)
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Sandbox(settings)) as sandbox,
    ):
        yield Cell(sandbox, portal)


def left_over() -> list[str]:
    """Processes of programs: those below us that are two process namespaces further down, but the first there, which watches."""
    own = len(_status(os.getpid())["NSpid"].split())
    found = []
    for pid in _below(os.getpid()):
        with suppress(OSError, KeyError):
            status = _status(pid)
            numbers = status["NSpid"].split()
            if (
                len(numbers) >= own + 2 and numbers[-1] != "1" and not status["State"].startswith("X")
            ):  # X is gone already
                found.append(f"{pid} {status['Name']} {status['State']}")
    return found


def _below(ancestor: int) -> set[int]:
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, KeyError):
            parents[int(folder.name)] = int(_status(int(folder.name))["PPid"])
    found: set[int] = set()
    while new := {pid for pid, parent in parents.items() if parent in found | {ancestor}} - found:
        found |= new
    return found


def _status(pid: int) -> dict[str, str]:
    lines = Path("/proc", str(pid), "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
