"""The command ``calibrate`` against a simulated server over HTTP, in real time."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from tests.support.command import flowevolve

SIM = [sys.executable, "-m", "flowevolve", "sim", "--profile", "fast-demo", "--port", "0"]


@pytest.fixture
def url() -> Iterator[str]:
    with Popen(SIM, stdout=PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().rsplit(" at ", 1)[1].strip()
        finally:
            server.terminate()


def test_a_server_is_measured_and_its_profile_written(url: str, tmp_path: Path) -> None:
    done = flowevolve("calibrate", url, "--most", "4", "--seconds", "10", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    profile = tomllib.loads((tmp_path / "server.toml").read_text())
    assert profile["output"]["most"] == 8192
    assert "written to server.toml" in done.stdout
    assert "checked" in done.stdout
    assert profile["cache_blocks"] == 22_000  # as its metrics say
    (tmp_path / "run.toml").write_text('preset = "plain"\n[llm]\nbackend = "sim"\n[budget]\nproposals = 2\n')
    told = done.stdout.rsplit("flowevolve ", 1)[1].replace("CONFIG", "run.toml")
    planned = flowevolve(*told.split(), cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk here")
def test_a_profile_that_can_not_be_written_any_more_is_printed(url: str, tmp_path: Path) -> None:
    (tmp_path / "server.toml").symlink_to("/dev/full")
    done = flowevolve("calibrate", url, "--most", "1", "--seconds", "10", cwd=tmp_path)
    assert done.returncode == 2
    assert tomllib.loads(done.stdout)["output"]["most"] == 8192
    assert "server.toml can't be written: " in done.stderr
    assert "Traceback" not in done.stderr


def test_whether_it_can_be_written_is_found_before_the_server_is_asked(tmp_path: Path) -> None:
    (tmp_path / "server.toml").mkdir()
    done = flowevolve("calibrate", "http://127.0.0.1:9/v1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "server.toml can't be written: " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["http://127.0.0.1:9/v1"], 3, "127.0.0.1:9"),
        (["http://127.0.0.1:9/v1", "--out", "server.json"], 2, "name a file that ends in .toml"),
        (["http://127.0.0.1:9/v1", "--out", "no/such/folder.toml"], 2, "in a folder that exists"),
        (["http://127.0.0.1:9/v1", "--api-key-env", "NO_SUCH_KEY_HERE"], 2, "NO_SUCH_KEY_HERE"),
        (["127.0.0.1:9"], 2, "calibrate.base_url"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(arguments: list[str], code: int, said: str, tmp_path: Path) -> None:
    done = flowevolve("calibrate", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_there_is_said(url: str, tmp_path: Path) -> None:
    done = flowevolve("calibrate", url, "--model", "no-such-model", cwd=tmp_path)
    assert done.returncode == 3
    assert "no-such-model" in done.stderr
