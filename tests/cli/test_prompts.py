"""``flowevolve prompts read``: one line for each row, in order, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flowevolve.cli.app import app
from tests.support.command import Done, flowevolve


def read(kind: str, *rows: object, folder: Path) -> Done:
    file = folder / "replies.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return flowevolve("prompts", "read", kind, "--jsonl", str(file), cwd=folder)


def test_each_row_has_its_line(tmp_path: Path) -> None:
    edit = "<<<<<<< SEARCH\na = 1\n=======\na = 2\n>>>>>>> REPLACE"
    done = read("edits", {"reply": edit, "parent": "a = 1\n", "id": 7}, {"reply": edit}, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = map(json.loads, done.stdout.splitlines())
    assert first == {"ok": True, "result": "a = 2\n", "reason": None}
    assert (second["ok"], second["result"]) == (False, None)
    assert second["reason"].startswith("missing: ")


@pytest.mark.parametrize(
    ("kind", "row", "result"),
    [
        ("answer", {"reply": "<think>…</think><answer>42</answer>"}, "42"),
        ("instruction", {"reply": "```\nBe brief.\n```"}, "Be brief."),
        ("program", {"reply": "```cpp\nint a;\n```", "language": "cpp", "parent": None}, "int a;\n"),
        ("json", {"reply": "{'a': NaN, 'b': 'é\u2028'}"}, {"a": None, "b": "é\u2028"}),
        ("verdict", {"reply": "8 9\nBoth are good."}, [8, 9]),
    ],
)
def test_every_kind_is_read(kind: str, row: object, result: object, tmp_path: Path) -> None:
    (line,) = read(kind, row, folder=tmp_path).stdout.splitlines()
    assert json.loads(line) == {"ok": True, "result": result, "reason": None}


def test_rows_may_come_from_standard_input() -> None:
    done = CliRunner().invoke(app, ["prompts", "read", "verdict", "--jsonl", "-"], input='{"reply": "yes"}')
    assert done.stdout == '{"ok": true, "result": "yes", "reason": null}\n'
    nothing = CliRunner().invoke(app, ["prompts", "read", "verdict", "--jsonl", "-"], input="")
    assert (nothing.stdout, nothing.exit_code) == ("", 0)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"reply": "a"}\n\n{"reply": "b"}\n', "line 2: is blank"),
        (b'{"reply": "a"}\n{"reply": \n', "line 2: is not JSON"),
        (b'{"reply": "a"}\n["a"]\n', 'line 2: has to be an object with a text "reply"'),
        (b'{"reply": 1}\n', 'line 1: has to be an object with a text "reply"'),
        (b'{"reply": "a", "parent": 1}\n', "line 1: 'parent' has to be a text"),
        (b'{"reply": "a"}\n\xff\n', "line 2 is not UTF-8"),
        (b"[" * 100_000, "line 1: is not JSON"),
    ],
)
def test_a_bad_row_is_named_before_anything_is_printed(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(content)
    done = flowevolve("prompts", "read", "answer", "--jsonl", "rows.jsonl", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = flowevolve("prompts", "read", "answer", "--jsonl", "gone.jsonl", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "gone.jsonl can't be read" in done.stderr


def test_what_an_algorithm_sends_is_shown_by_role(tmp_path: Path) -> None:
    done = flowevolve("prompts", "show", "gepa", "--role", "reflection", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    heads = [line for line in done.stdout.splitlines() if line.startswith("==== ")]
    assert {line.split(" · ")[2].partition("@")[0] for line in heads} >= {"template reflect", "template judge"}
    assert all(line.startswith("==== role reflection · ") for line in heads)
    assert "# Improve an instruction\n" in done.stdout
    assert not list(tmp_path.iterdir())


def test_prompts_are_shown_for_a_configuration_with_templates_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "reflect.md").write_text("MY WORDS {component} {text} {others} {examples}", encoding="utf-8")
    (tmp_path / "run.toml").write_text(
        '[prompts]\ndir = "own"\n[llm]\nmodel = "gpt-5"\nbackend = "openai"\n[budget]\ndollars = 5\n', encoding="utf-8"
    )
    done = flowevolve("prompts", "show", "gepa", "--config", "run.toml", "--role", "reflection", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "MY WORDS system_prompt" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["gepa", "--role", "judge"],
            "--role judge: nothing is sent to this role in so short a run, which calls only task, refl",
        ),
        (
            ["gepa", "--set", "seed=1"],
            "--set overrides a setting of a configuration; name the configuration with --config",
        ),
        (["gepa", "--config", "none.toml"], "none.toml: no such config file"),
        (["gepo"], "unknown algorithm 'gepo'; did you mean 'gepa'?"),
    ],
)
def test_what_can_t_be_shown_is_told_in_a_line(arguments: list[str], problem: str, tmp_path: Path) -> None:
    done = flowevolve("prompts", "show", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
