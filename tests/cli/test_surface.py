"""What the command line says of itself, and how its output ends where nobody reads on."""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import get_args

import pytest

from flowevolve._util import errors
from flowevolve._util.errors import FlowevolveError
from flowevolve.cli.app import EXIT_CODES
from flowevolve.cli.list import ABOUT_PRESETS
from flowevolve.config.presets import Preset
from flowevolve.runner.registries import ALGORITHMS
from tests.support.command import flowevolve

ROOT = Path(__file__).parents[2]


def test_the_reference_lists_every_command_with_its_options() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "cli_reference.py"))
    page = made["PAGE"].read_text("utf-8")
    assert page == made["written"](page), "python tools/cli_reference.py writes it anew"


def test_every_exit_code_is_in_the_help_and_in_the_reference(tmp_path: Path) -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, FlowevolveError)]
    page = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    for code in {0, 130, *(each.exit_code for each in kinds)}:
        assert f" {code} " in EXIT_CODES
        assert f"\n| {code} | " in page
    said = " ".join(flowevolve("--help", cwd=tmp_path).stdout.split())
    assert EXIT_CODES in said


def test_no_help_points_at_files_that_a_package_has_not(tmp_path: Path) -> None:
    for command in ("", "run", "check", "init", "list", "resume", "prompts show", "serve"):
        said = flowevolve(*command.split(), "--help", cwd=tmp_path)
        assert said.returncode == 0
        assert "docs/" not in said.stdout


def test_the_version_is_told(tmp_path: Path) -> None:
    assert flowevolve("--version", cwd=tmp_path).stdout == f"flowevolve {version('flowevolve')}\n"


def test_shells_can_complete_commands(tmp_path: Path) -> None:
    assert "--install-completion" in flowevolve("--help", cwd=tmp_path).stdout


def test_what_can_be_listed_is_listed(tmp_path: Path) -> None:
    lines = flowevolve("list", cwd=tmp_path).stdout.splitlines()
    for line in lines:
        assert flowevolve(*line.split()[1:3], cwd=tmp_path).returncode == 0
    assert "flowevolve list algorithms" in lines[0]


@pytest.mark.parametrize(
    "what", ["algorithms", "archives", "backends", "policies", "presets", "problems", "profiles", "tasks", "worlds"]
)
def test_every_name_in_a_list_is_described(what: str, tmp_path: Path) -> None:
    lines = flowevolve("list", what, cwd=tmp_path).stdout.splitlines()
    names = [number for number, line in enumerate(lines) if not line.startswith(" ")]
    described = [number - 1 for number, line in enumerate(lines) if line.startswith("    ")]
    assert names
    assert set(names) <= set(described)


def test_every_preset_is_listed() -> None:
    assert set(ABOUT_PRESETS) == set(get_args(Preset))


def test_algorithms_are_described_in_two_lines() -> None:
    for listed in ALGORITHMS.listing():
        assert 100 < len(listed.about) < 220


CLOSED = ["list problems | head -1", "--help | head -1", "run run.toml -v 2>&1 | head -1"]


@pytest.mark.parametrize("line", CLOSED)
def test_the_reader_of_the_output_may_go_away(line: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('clock = "virtual"\n[budget]\nproposals = 2\n')
    script = f"set -o pipefail; {sys.executable} -m flowevolve {line}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
    if line.startswith("run"):
        assert list(tmp_path.glob("runs/*/result.json"))


def test_a_run_whose_terminal_is_closed_stops_and_keeps_what_it_has(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    (tmp_path / "run.toml").write_text("drain_seconds = 0\n[budget]\nminutes = 5\n")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "flowevolve", "run", "run.toml", "--out", "out"]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as running:
        os.close(theirs)
        shown = b""
        while not re.search(rb"running, [1-9]", shown):  # so it has begun
            shown += os.read(ours, 4096)
        os.close(ours)  # from now on what it shows is an error
        running.send_signal(signal.SIGHUP)
        assert running.wait(60) == 130
    assert json.loads((tmp_path / "out" / "result.json").read_text())["stop_reason"] == "interrupted"


def test_log_lines_are_told_only_where_they_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('clock = "virtual"\n[budget]\nproposals = 2\n[sim.faults]\nrate = 0.2\n')
    quiet = flowevolve("run", "run.toml", cwd=tmp_path)
    assert (quiet.returncode, quiet.stderr) == (0, "")
    told = flowevolve("run", "run.toml", "-v", cwd=tmp_path)
    assert "run.start" in told.stderr
