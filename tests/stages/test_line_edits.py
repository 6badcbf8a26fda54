"""Edits of lines, made again on another version of the text."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from flowevolve.stages.line_edits import edit_again

lines = st.lists(st.sampled_from(["Be brief.", "Be kind.", "Name the file.", "Say why.", ""]), max_size=6)
texts = lines.map("\n".join)


@pytest.mark.parametrize(
    ("before", "after", "current", "again"),
    [
        ("a\nb", "a\nb\nnew", "a\nb\nother", "a\nb\nnew\nother"),
        ("a\nb", "a\nnew\nb", "z\na\nb", "z\na\nnew\nb"),
        ("a\nb\nc", "a\nc", "a\nb\nc\nd", "a\nc\nd"),
        ("a\nb\nc", "a\nbetter b\nc", "a\nb\nc\nd", "a\nbetter b\nc\nd"),
        ("a\nb\nc", "a\nbetter b\nc", "x\na\nc", "x\na\nbetter b\nc"),
        ("a\nb", "a\nb\nnew", "c\nd", "c\nd\nnew"),
        ("a\nb", "a\nb\nnew", "a\nnew\nb", "a\nnew\nb"),
        ("a\nb", "first\na\nb", "a\nb\nc", "first\na\nb\nc"),
        ("a\nb\n", "a\nb\nnew\n", "a\nb\nother\n", "a\nb\nnew\nother\n"),
        ("a\nb\n", "a\nb\nnew\n", "a\nb\nnew\nother\n", "a\nb\nnew\nother\n"),
        ("a\fb", "a\fb\nnew", "a\fb\r\nother", "a\fb\r\nother\nnew"),
    ],
    ids=[
        "added",
        "inside",
        "taken out",
        "changed",
        "its line is gone",
        "all is gone",
        "there already",
        "on top",
        "last newline",
        "nothing new",
        "other breaks",
    ],
)
def test_what_changed_changes_again(before: str, after: str, current: str, again: str) -> None:
    assert edit_again(before, after, current) == again


@pytest.mark.parametrize(
    ("before", "after", "current", "again"),
    [
        ("Do it.", "Do it. Be kind.", "Do it. Be brief.", "Do it. Be brief. Be kind."),
        ("Do it.", "Do it. Be kind.", "Do it. Be kind. Be brief.", "Do it. Be kind. Be brief."),
        ("Do it well now.", "Do it very well now.", "Do it well right now.", "Do it very well right now."),
        ("Do it well now.", "Do it now.", "Please Do it well now.", "Please Do it now."),
        ("Name two files.", "Name all files.", "Name two big files.", "Name all big files."),
        ("Use one word for it.", "Use two words for it.", "Use one short word for it.", None),
        ("a\nb\nc\nd", "d\nc\nb\na\ne", "a\nb\nc\nd\nf", "a\nb\nc\nd\nf\ne"),
        ("a\nb\nc\nd", "e\nd\nc\nb", "b\na\nf\nc\nd\n", "b\nf\nc\nd\ne\n"),
    ],
    ids=[
        "added",
        "there already",
        "inside",
        "taken out",
        "changed",
        "the same words",
        "another order",
        "out of another order",
    ],
)
def test_where_lines_do_not_stay_it_goes_by_words_or_by_lines_in_any_order(
    before: str, after: str, current: str, again: str | None
) -> None:
    assert edit_again(before, after, current) == again


def test_a_new_text_is_no_edit() -> None:
    assert edit_again("a\nb\nc", "x\ny\nz", "a\nb\nd") is None
    assert edit_again("a\nb\nc", "x\ny\nz", "a\nb\nc") == "x\ny\nz"


@given(before=texts, after=texts)
def test_on_the_text_it_was_made_on_it_is_the_same_edit(before: str, after: str) -> None:
    assert edit_again(before, after, before) == after


@example(before="\nBe brief.", after="Be kind.\nBe kind.", current="Be brief.")
@given(before=texts, after=texts, current=texts)
def test_nothing_is_added_that_was_in_neither_text(before: str, after: str, current: str) -> None:
    again = edit_again(before, after, current)
    if again is not None:
        assert set(again.splitlines()) <= {*after.splitlines(), *current.splitlines()}


@given(text=texts, current=texts)
def test_an_edit_that_changed_nothing_changes_nothing(text: str, current: str) -> None:
    assert edit_again(text, text, current) == current
