"""Making every figure again: what is called, and what comes of a bench that fails."""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from bench._lib.paths import lacking
from bench.all import __main__ as command
from bench.all.__main__ import arguments, main, python_of
from bench.report.bench import Bench
from bench.report.benches import BENCHES
from bench.report.results import read

FILES = re.compile(r" --(json|figures?|charts) \S+")
MADE = [each for each in BENCHES if each.quick is not None]


class ParsedError(Exception):
    """The command line could be read; what it asks for is not done here."""


@pytest.mark.parametrize("is_quick", [True, False], ids=["quick", "full"])
@pytest.mark.parametrize("each", MADE, ids=[each.name for each in MADE])
def test_every_bench_takes_what_it_is_called_with(
    each: Bench, is_quick: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, module, *rest = arguments(each, tmp_path / "result.json", is_quick=is_quick)
    read = ArgumentParser.parse_args

    def parse(self: ArgumentParser, args: Sequence[str] | None = None) -> Namespace:
        assert read(self, args).json == tmp_path / "result.json"
        raise ParsedError

    monkeypatch.setattr(sys, "argv", [module, *rest])
    monkeypatch.setattr(ArgumentParser, "parse_args", parse)
    with pytest.raises(ParsedError):
        import_module(f"{module}.__main__").main()


@pytest.mark.parametrize("each", MADE, ids=[each.name for each in MADE])
def test_the_full_tier_calls_what_the_page_says_that_was_called(each: Bench) -> None:
    content = read(each.name)
    if content is not None:
        lines = [line.strip() for line in each.section(content).splitlines()]
        called = [FILES.sub("", line) for line in lines if line.startswith("python -m bench.")]
        assert FILES.sub("", " ".join(["python", *arguments(each, Path("result"), is_quick=False)])) in called


def test_a_bench_that_needs_more_than_ours_runs_in_its_own_environment_once_that_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(f"{command.__name__}.ROOT", tmp_path)
    nodes, page = (next(each for each in BENCHES if each.name == name) for name in ("nodes", "page"))
    assert python_of(page) == python_of(nodes) == sys.executable
    own = tmp_path / ".venv-ray"
    own.mkdir()
    assert python_of(nodes) == sys.executable, "it is not installed yet"
    (own / ".installed").touch()
    assert (python_of(page), python_of(nodes)) == (sys.executable, f"{own}/bin/python")


def test_a_bench_whose_rows_are_not_there_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "lacking", lambda files: lacking(files, tmp_path))
    monkeypatch.setattr(sys, "argv", ["all", "--tier", "quick", "--only", "meta_harness", "--out", f"{tmp_path}"])
    assert main() == 0
    said = capsys.readouterr().out
    assert f"meta_harness: left out. {tmp_path}/symptom2disease/symptom2disease_train.jsonl: no such file" in said
    assert said.endswith("; left out: meta_harness\n")


def test_a_bench_that_fails_stops_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[str] = []

    def run(command: Sequence[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        called.append(command[2])
        return subprocess.CompletedProcess(command, 1 if command[2] == "bench.scale" else 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(
        sys, "argv", ["all", "--tier", "quick", "--only", "page", "scale", "overhead", "--out", f"{tmp_path}"]
    )
    assert main() == 1
    assert called == ["bench.overhead", "bench.scale", "bench.page"]
    assert "failed: scale" in capsys.readouterr().out
