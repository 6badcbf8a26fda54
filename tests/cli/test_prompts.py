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
        (b'{"reply": "a"}\n\xff\n', "line 2: is not UTF-8"),
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
    assert "gone.jsonl: can't be read" in done.stderr
