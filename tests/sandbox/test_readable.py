"""Folders that programs may read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.sandbox import Sandbox, SandboxSettings

pytestmark = pytest.mark.anyio

LOOK = """
import os
def look(path):
    found = {}
    for folder, _, files in os.walk(path):
        for file in files:
            with open(os.path.join(folder, file)) as text:
                found[os.path.relpath(os.path.join(folder, file), path)] = text.read()
    return found
"""
WRITE = "def write(path):\n    open(path + '/new.txt', 'w')"
FIND = """
import os
def find(names):
    found = []
    for top in ("/tmp", "/home", "/root", "/run", "/mnt", "/srv", "/var", "/opt"):
        for folder, folders, files in os.walk(top):
            found += [os.path.join(folder, name) for name in [*folders, *files] if name in names]
            folders[:] = [name for name in folders if name != "packages"]
    return found
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of which programs may read ``shown``, as whoever they run as."""
    for path in (tmp_path / "shown" / "deep", tmp_path / "hidden"):
        path.mkdir(parents=True)
    (tmp_path / "shown" / "one.txt").write_text("1")
    (tmp_path / "shown" / "deep" / "two.txt").write_text("2")
    (tmp_path / "beside_it.txt").write_text("not for you")
    (tmp_path / "shown" / "leads_out.txt").symlink_to(tmp_path / "beside_it.txt")
    for path in (tmp_path / "shown", tmp_path / "shown" / "deep"):
        path.chmod(0o755)
    return tmp_path


def settings(*folders: Path) -> SandboxSettings:
    return SandboxSettings(concurrency=1, preload=(), readable=folders, timeout=60.0)


async def test_what_is_in_them_is_read_and_not_written(folder: Path) -> None:
    (folder / "shown" / "leads_out.txt").unlink()
    async with Sandbox(settings(folder / "shown")) as sandbox:
        there = sandbox.readable_at(folder / "shown")
        read = await sandbox.run(LOOK, call="look", arguments=[there])
        written = await sandbox.run(WRITE, call="write", arguments=[there])
    assert read.result == {"one.txt": "1", "deep/two.txt": "2"}
    assert written.status == "denied"
    assert not (folder / "shown" / "new.txt").exists()


async def test_nothing_else_is_in_view(folder: Path) -> None:
    names = ["hidden", "beside_it.txt", folder.name, *(path.name for path in folder.parents if path.name)]
    names = [name for name in names if name not in ("tmp", "run", "var", "home", "root")]
    async with Sandbox(settings()) as without, Sandbox(settings(folder / "shown")) as sandbox:
        before = await without.run(FIND, call="find", arguments=[[*names, "one.txt"]])
        after = await sandbox.run(FIND, call="find", arguments=[[*names, "one.txt"]])
        out = await sandbox.run(LOOK, call="look", arguments=[sandbox.readable_at(folder / "shown")])
    assert before.result == []
    assert after.result == [f"{sandbox.readable_at(folder / 'shown')}/one.txt"]
    assert "No such file" in out.stderr  # a link out of the folder leads nowhere


async def test_with_limits_alone_they_are_where_they_are(folder: Path) -> None:
    given = SandboxSettings(isolation="limits", concurrency=1, preload=(), readable=(folder / "shown" / "deep",))
    async with Sandbox(given) as sandbox:
        there = sandbox.readable_at(folder / "shown" / "deep")
        read = await sandbox.run(LOOK, call="look", arguments=[there])
    assert there == str((folder / "shown" / "deep").resolve())
    assert read.result == {"two.txt": "2"}


@pytest.mark.parametrize("kind", ["socket", "pipe"])
async def test_what_leads_out_of_them_is_refused(folder: Path, kind: str) -> None:
    """A read-only file system keeps nobody from writing to a pipe, or from connecting to a socket."""
    path = folder / "shown" / "deep" / "door"
    with socket.socket(socket.AF_UNIX) as listening:
        if kind == "pipe":
            os.mkfifo(path)
        else:
            listening.bind(str(path))
        with pytest.raises(InputError, match=r"sandbox.readable: .*/deep/door is a socket, a pipe"):
            await Sandbox(settings(folder / "shown")).__aenter__()


def test_one_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(InputError, match=r"sandbox.readable: .*/nowhere: there is no such folder"):
        Sandbox(settings(folder / "nowhere"))
