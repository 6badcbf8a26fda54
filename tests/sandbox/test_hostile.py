"""None escapes, none outlives its time-out by long, and the sandbox goes on."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.sandbox.conftest import Cell, left_over
from tests.support.depth import LONG
from tests.support.hostile import PROGRAMS, Hostile
from tests.support.hostile_found import FOUND

SECRET = "sk-not-for-programs"
GOOD = "import json\nprint('fine')\nresult = {'squares': [n * n for n in range(5)]}"


@dataclass
class World:
    """What there is to attack outside."""

    folder: Path
    listening: list[socket.socket] = field(default_factory=list)

    def aim(self, source: str) -> str:
        aims = {
            "SECRET": str(self.folder / "key-of-somebody"),
            "TARGET": str(self.folder / "target"),
            "PID": str(os.getpid()),
            "PORT": str(self.listening[0].getsockname()[1]),
            "SOCKET": str(self.folder / "socket"),
            "ABSTRACT": f"flowevolve-test-{os.getpid()}",
        }
        for name, value in aims.items():
            source = source.replace(f"@{name}@", value)
        return source

    def reached(self) -> bool:
        """Whether anybody came in through a socket."""
        for each in self.listening:
            try:
                each.accept() if each.type == socket.SOCK_STREAM else each.recv(16)
            except BlockingIOError:
                continue
            return True
        return False


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("w")
    (folder / "key-of-somebody").write_text(SECRET)
    world = World(folder)
    tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    path, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    world.listening += [tcp, udp, path, abstract]
    tcp.bind(("127.0.0.1", 0))
    udp.bind(tcp.getsockname())
    path.bind(str(folder / "socket"))
    abstract.bind(f"\0flowevolve-test-{os.getpid()}")
    for each in world.listening:
        each.setblocking(False)
        if each.type == socket.SOCK_STREAM:
            each.listen()
    yield world
    for each in world.listening:
        each.close()


def mounts() -> int:
    return len(Path("/proc/self/mountinfo").read_text().splitlines())


def strangers() -> list[str]:
    """Files that programs make, where those outside would be."""
    return [str(path) for folder in ("/tmp", "/dev/shm") for path in Path(folder).glob("hostile*")]


def chosen() -> list[Hostile]:
    """All of them in the long form; in the short one a few of those that take all their time or memory."""
    every = [*PROGRAMS, *FOUND]
    slow = [hostile for hostile in every if {"timeout", "memory"} & {*hostile.statuses}]
    return every if LONG else [hostile for hostile in every if hostile not in slow or slow.index(hostile) % 4 == 0]


@pytest.mark.parametrize("hostile", chosen(), ids=lambda hostile: hostile.name.replace(" ", "-"))
def test_hostile_programs_do_no_harm(hostile: Hostile, cell: Cell, world: World) -> None:
    before = mounts(), strangers()
    outcome = cell.run(world.aim(hostile.source), timeout=hostile.timeout, command=hostile.command)
    said = outcome.stdout + outcome.stderr + str(outcome.result)
    assert outcome.status in hostile.statuses, said
    assert SECRET not in said
    assert "GOT IN" not in said
    assert outcome.seconds < hostile.timeout + 10  # an idle machine needs a fraction of a second, a busy one some
    assert len(outcome.stdout) <= 64 * 1024
    assert len(outcome.stderr) <= 64 * 1024 + 100
    assert left_over() == []
    assert sorted(path.name for path in world.folder.iterdir()) == ["key-of-somebody", "socket"]
    assert not world.reached()
    assert (mounts(), strangers()) == before
    after = cell.run(GOOD)
    assert (after.status, after.result) == ("ok", {"squares": [0, 1, 4, 9, 16]}), after


def test_the_list_is_long_enough() -> None:
    every = [*PROGRAMS, *FOUND]
    assert len({hostile.name for hostile in every}) == len(every) >= 200
