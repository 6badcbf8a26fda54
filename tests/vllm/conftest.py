"""A ``vllm`` command of our own in a folder like an environment's, and what its processes left behind."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from flowevolve._util.tasks import Pulse
from flowevolve.vllm.server import ServerChange
from tests.support.with_ray import WITHOUT_RAY

collect_ignore_glob = WITHOUT_RAY
ROOT = Path(__file__).parents[2]
FAKE = ROOT / "tests" / "support" / "fake_vllm.py"
REAL: dict[str, object] = {
    "executable": str(ROOT / ".venv-vllm"),
    "model": str(ROOT / ".models" / "tiny"),
    "device": "cpu",
    "flags": ["--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "4"],
    "environment": {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_SERVER_DEV_MODE": "1"},
    "startup_seconds": 300.0,
}
"""The ``[vllm]`` section for the real vLLM of `make test-vllm`, with its model of random weights."""
KEEP_TRYING: dict[str, object] = {"fruitless": 1000}
"""The ``[stopping]`` section for that model, hardly any of whose replies can be read."""


@dataclass(frozen=True)
class Start:
    """What the fake command notes of a start."""

    arguments: list[str]
    environment: dict[str, str]
    pids: list[int]
    """Of the server, and of its child in another session."""


class FakeVLLM:
    """The environment with the fake command, and the notes of its starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes = folder / "notes"
        self.notes.mkdir(parents=True)
        command = folder / "bin" / "vllm"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" "{FAKE}" "$@"\n')
        command.chmod(0o755)

    def settings(self, *fates: str) -> dict[str, object]:
        """The ``[vllm]`` section for starts with these fates."""
        environment = {"FAKE_NOTES": str(self.notes), "FAKE_FATES": ",".join(fates or ("serve",))}
        return {"executable": str(self.folder), "environment": environment, "device": "cpu", "stop_seconds": 5.0}

    def starts(self) -> list[Start]:
        paths = sorted(self.notes.iterdir(), key=lambda path: int(path.name))
        return [Start(**json.loads(path.read_text())) for path in paths]

    def processes(self) -> list[int]:
        """All processes it ever started."""
        return [pid for start in self.starts() for pid in start.pids]

    def alive(self) -> list[int]:
        return [pid for pid in self.processes() if is_alive(pid)]


@dataclass
class Heard:
    """The events of servers, apart from reports on the progress of a start, of which a slow machine has more."""

    server_changes: list[ServerChange] = field(default_factory=list)
    progress: list[ServerChange] = field(default_factory=list)
    pulse: Pulse = field(default_factory=Pulse)

    def tell(self, server_changes: ServerChange) -> None:
        (self.progress if server_changes.kind == "starting" else self.server_changes).append(server_changes)
        self.pulse.fire()

    def kinds(self) -> list[str]:
        return [each.kind for each in self.server_changes]

    async def until(self, *kinds: str) -> None:
        """Wait until the events had exactly these kinds."""
        with anyio.fail_after(180):
            while self.kinds() != list(kinds):
                await self.pulse.wait()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not reaped does not."""
    try:
        return status(pid)[0] not in "ZX"
    except OSError:
        return False


def parent(pid: int) -> int:
    return int(status(pid)[1])


def status(pid: int) -> list[str]:
    """State, parent, group, session and so on of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeVLLM]:
    environment = FakeVLLM(tmp_path / "environment")
    yield environment
    for pid in environment.alive():  # only where a test failed
        with suppress(ProcessLookupError):
            os.kill(pid, 9)


@pytest.fixture
def wait_for_death() -> Callable[[int], None]:
    """Waits, without polling, until a process that need not be a child of ours has ended."""

    def wait(pid: int) -> None:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            ready, _, _ = select.select([handle], [], [], 30)
        finally:
            os.close(handle)
        assert ready, f"process {pid} still runs"

    return wait
