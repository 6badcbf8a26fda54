"""No text can steer the terminal on which it is shown, and none is too odd to be shown."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given, strategies as st
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from flowevolve._util.console import PlainConsole, shown

HOSTILE = "a\x1b[31mred\x1b]0;title\x07 \x9b31m \ud800 back\b \u202eright-to-left \x7f"


def printed(*renderables: object, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    console = PlainConsole()
    console.file = io.TextIOWrapper(raw, encoding, write_through=True)
    for each in renderables:
        console.print(each)
    return raw.getvalue().decode(encoding)


@given(st.text())
def test_what_is_shown_is_as_long_and_holds_nothing_that_steers_a_terminal(text: str) -> None:
    said = shown(text)
    assert len(said) == len(text)
    assert not [
        each for each in said if unicodedata.category(each) in ("Cc", "Cs", "Cf") and each not in "\t\n\u200c\u200d"
    ]
    said.encode()
    assert shown(said) == said


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_texts_in_panels_tables_and_lines_are_shown_by_pictures(encoding: str) -> None:
    table = Table()
    table.add_column(HOSTILE)
    table.add_row(HOSTILE, "x" * 200)
    said = printed(HOSTILE, Text(HOSTILE), Panel(Text(HOSTILE), title=Text(HOSTILE)), table, encoding=encoding)
    assert not set(said) & set("\x1b\x07\x08\x7f\x9b\u202e")
    assert "red" in said
    assert ("␛[31mred␛]0;title" in said) == (encoding == "utf-8")


def test_a_panel_stays_straight() -> None:
    lines = printed(Panel(Text("a\x1b[31m\nb\x9b\n\u4e2d\ud800"), width=20)).splitlines()
    assert [line[-1] for line in lines] == ["╮", "│", "│", "│", "╯"]


def test_brackets_and_words_between_colons_are_shown_as_they_are() -> None:
    assert printed("[red]:smile:[/red]") == "[red]:smile:[/red]\n"
