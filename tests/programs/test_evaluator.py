"""Problems whose evaluator runs beside the program: commands, and reports that may be anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.programs import EvaluatorProblem, Verdict, WrongResultError
from flowevolve.programs.evaluator import (
    Report,
    command_problem,
    describe_report,
    metric_or_mean,
    read_report,
    with_readable_evaluator,
)
from flowevolve.sandbox import Sandbox, SandboxSettings

SCRIPT = """#!/bin/sh
grep -q "$(cat word.txt)" "$1" || { echo "the word is missing" >&2; exit 3; }
wc -l < "$1"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    (tmp_path / "score.sh").write_text(SCRIPT)
    (tmp_path / "score.sh").chmod(0o755)
    (tmp_path / "word.txt").write_text("magic")
    (tmp_path / "seed.txt").write_text("magic\n")
    return tmp_path


async def judge(problem: EvaluatorProblem, program: str) -> Verdict:
    settings = SandboxSettings(concurrency=1, timeout=5, preload=())
    artifact = Artifact({problem.file: program}, kind="program")
    async with Sandbox(with_readable_evaluator(settings, problem)) as sandbox:
        return await problem.judge(artifact, problem.cases[0], sandbox)


@pytest.mark.anyio
async def test_a_command_prints_a_number(folder: Path) -> None:
    problem = command_problem(("./score.sh", "{program}"), folder / "seed.txt", "Many lines, please.")
    assert (problem.name, problem.file, problem.statement) == ("seed", "seed.txt", "Many lines, please.")
    assert (await judge(problem, "magic\nand\nmore\n")).value == 3.0
    failed = await judge(problem, "nothing\n")
    assert failed.failure == "error: RuntimeError: ./score.sh ended with 3"
    assert "the word is missing" in failed.feedback


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("prints", "value", "failure"),
    [
        ('echo \'{"score": 0.5, "speed": 3, "hint": "go on"}\'', 0.5, None),
        ("echo starting; echo 0.25", 0.25, None),
        ('echo \'{"score": 1, "error": "too slow"}\'', 0.0, "too slow"),
        ("echo '{\"speed\": 3}'", 0.0, "no score among the metrics (speed)"),
        ("echo nothing", 0.0, "JSONDecodeError"),
        ("true", 0.0, "printed no number and no JSON object"),
        ("no-such-command", 0.0, "ended with 127"),
    ],
)
async def test_what_a_command_may_print(folder: Path, prints: str, value: float, failure: str | None) -> None:
    verdict = await judge(command_problem(("sh", "-c", prints, "{program}"), folder / "seed.txt"), "x")
    assert verdict.value == value
    assert (failure is None) == (verdict.failure is None)
    assert failure is None or failure in str(verdict.failure)


def test_a_command_has_to_name_the_program(folder: Path) -> None:
    with pytest.raises(InputError, match=r"but has to contain \{program\}, the program's path"):
        command_problem(("./score.sh",), folder / "seed.txt")
    with pytest.raises(InputError, match="can't be read"):
        command_problem(("./score.sh", "{program}"), folder / "none.txt")


@pytest.mark.parametrize(
    "result",
    [None, 3, [], {}, {"metrics": 1, "texts": {}, "failure": None}, {"metrics": {}, "texts": {}, "failure": 1}],
)
def test_reports_that_are_none(result: JSON) -> None:
    with pytest.raises(WrongResultError):
        read_report(result)


def test_what_is_no_number_is_no_metric() -> None:
    report = read_report({"metrics": {"a": 1, "b": "x", "c": None}, "texts": {"d": 5}, "failure": None})
    assert (report.metrics, report.texts) == ({"a": 1.0}, {"d": "5"})


def test_scores_of_metrics() -> None:
    read = metric_or_mean("combined_score", but=("length",))
    assert read({"combined_score": 0.5, "other": 4}) == 0.5
    assert read({"one": 1.0, "two": 2.0, "length": 90}) == 1.5
    assert read({"length": 90}) == 90
    assert read({}) is None


def test_long_texts_keep_their_ends() -> None:
    said = describe_report(Report({"score": 1}, {"log": "a" * 50 + "z" * 50, "empty": " "}), quoted=20)
    assert said == f"score 1\nlog: {'a' * 10}\n...\n{'z' * 10}"


def test_the_folder_of_others_is_not_in_view() -> None:
    settings = SandboxSettings()
    assert with_readable_evaluator(settings, object()) is settings
