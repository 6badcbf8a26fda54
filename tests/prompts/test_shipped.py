"""Templates in a folder of the user's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.prompts.shipped import SHIPPED, read_templates

REFLECT = (
    "# Improve an instruction\n\nIN MY WORDS: {component}\n\n## Current instruction\n{text}\n\n{others}\n{examples}\n"
)


def test_a_folder_has_templates_in_place_of_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "reflect.md").write_text(REFLECT, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a template", encoding="utf-8")
    templates = read_templates(tmp_path, 1000)
    assert templates["reflect"].text == REFLECT.strip()
    assert templates["judge"] == SHIPPED["judge"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("reflekt.md", REFLECT, "there is no template 'reflekt'; there are "),
        ("reflect.md", "{text}", "template 'reflect' lacks the field {component}"),
        ("reflect.txt", REFLECT, "there is no template in this folder; a template is a file named NAME.md"),
        ("reflect.md", b"\xff", "can't be read: it is not text in UTF-8"),
    ],
)
def test_a_folder_that_can_t_be_used_is_told_of(tmp_path: Path, name: str, text: str | bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=re.escape(problem)) as raised:
        read_templates(tmp_path, 1000)
    assert str(raised.value).startswith(f"prompts.dir: {tmp_path}")


def test_a_folder_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_templates(tmp_path / "none", 1000)
