"""Commands that serve something: what is said of the address is only what was wrong with it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.command import flowevolve

CONFIG = 'clock = "virtual"\n[budget]\nproposals = 2\n'
COMMANDS = {
    "sim": ["sim", "--profile", "fast-demo"],
    "watch": ["watch", "out"],
    "gateway": ["gateway", "http://127.0.0.1:9/v1"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run."""
    folder = tmp_path_factory.mktemp("serving")
    (folder / "run.toml").write_text(CONFIG, "utf-8")
    assert flowevolve("run", "run.toml", "--out", "out", cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_port_that_is_taken_is_named(command: str, folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = flowevolve(*COMMANDS[command], "--port", str(port), cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {command} can't listen on 127.0.0.1:{port}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_what_fails_later_is_told_as_it_is(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails() -> None:
        raise OSError(5, "the disk is gone")

    monkeypatch.setattr(f"flowevolve.cli.{command}.until_ended", fails)
    with pytest.raises(OSError, match="the disk is gone"):
        flowevolve(*COMMANDS[command], "--port", "0", cwd=folder)
