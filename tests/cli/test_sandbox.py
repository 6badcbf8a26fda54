"""``flowevolve sandbox run``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flowevolve._util.errors import InputError
from flowevolve.cli.app import app

FIELDS = ["status", "seconds", "cpu_seconds", "peak_mb", "stdout", "stderr", "result"]


def run(*arguments: str) -> dict[str, object]:
    done = CliRunner().invoke(app, ["sandbox", "run", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    (line,) = done.stdout.splitlines()
    fields: dict[str, object] = json.loads(line)
    return fields


def test_one_line_of_json(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('hello')\nresult = [1, 2]")
    fields = run(str(program), "--timeout", "5", "--memory", "100")
    assert list(fields) == FIELDS
    assert (fields["status"], fields["stdout"], fields["result"]) == ("ok", "hello\n", [1, 2])


def test_calls_and_commands(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("def double(x): return 2 * x")
    assert run(str(program), "--call", "double", "--arguments", '{"x": 21}')["result"] == 42
    script = tmp_path / "program.sh"
    script.write_text("cat")
    assert run(str(script), "--command", "sh -e", "--arguments", "[1]")["result"] == [1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.py"], "missing.py can't be read"),
        (["{file}", "--timeout", "0"], "sandbox.timeout"),
        (["{file}", "--memory", "-5"], "sandbox.memory_mb"),
        (["{file}", "--isolation", "none"], "sandbox.isolation"),
        (["{file}", "--memory", str(10**12)], "sandbox.memory_mb is 1000000000000, but has to be at most 16777216"),
        (["{file}", "--arguments", "{"], "--arguments is not JSON"),
        (["{file}", "--arguments", "[NaN]"], "--arguments is not JSON: NaN"),
        (["{file}", "--arguments", "[" * 900 + "]" * 900], "--arguments is nested more than 64 deep"),
        (["{file}", "--arguments", "[" * 10**5], "--arguments is nested more than 64 deep"),
        (["{file}", "--arguments", "[1e999]"], "--arguments has a number beyond what a float holds"),
        (["{file}", "--arguments", '["\\ud800"]'], "half a character"),
        (["{file}", "--command", "sh\n'"], "can't be read: no closing quotation"),
        (["{file}", "--command", " "], "--command is empty"),
        (["{file}", "--arguments", "3"], "--arguments is 3; give a JSON object"),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path: Path, arguments: list[str], says: str) -> None:
    file = tmp_path / "program.py"
    file.write_text("")
    with pytest.raises(InputError) as error:
        run(*(argument.replace("{file}", str(file)) for argument in arguments))
    assert says in str(error.value)
    assert "\n" not in str(error.value)
