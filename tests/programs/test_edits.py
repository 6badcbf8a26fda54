"""SEARCH/REPLACE edits: what they make of a text, and what they refuse."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from flowevolve.core.reply_reading import Reason
from flowevolve.programs.blocks import outside_unchanged
from flowevolve.programs.edits import Edit, EditError, apply_edit
from flowevolve.prompts.reading.edits import apply_edits, failure, find_edits
from flowevolve.sim.worlds.code.writing import edits_between

TEXT = "import math\n# EVOLVE-BLOCK-START\na = 1\nb = 2\nb = 2\n# EVOLVE-BLOCK-END\nprint(a)\n"


def applied(text: str, reply: str) -> str:
    """The text with all edits of a reply made. Raises an error if one can't be made."""
    return applied_to({"program.py": text}, reply)["program.py"]


def applied_to(files: dict[str, str], reply: str) -> dict[str, str]:
    found = find_edits(reply)
    changed, left_out = apply_edits(files, found)
    if left_out:
        raise failure(left_out, len(found))
    return changed


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def test_blocks_are_applied_in_order_each_to_what_the_ones_before_it_left() -> None:
    reply = "First this:\n" + block("a = 1", "a = 3\nc = 4") + "and then\n" + block("c = 4\nb = 2", "c = 5")
    assert applied(TEXT, reply) == TEXT.replace("a = 1\nb = 2", "a = 3\nc = 5")


def test_blank_lines_at_the_edges_that_only_the_search_text_has_go_as_far_as_there_are_any() -> None:
    text = "a = 1\nb = 2\n\n\ndef f():\n    return b\n"
    assert applied(text, block("a = 1\nb = 2\n\n", "a = 1")) == "a = 1\ndef f():\n    return b\n"
    assert applied(text, block("\na = 1\nb = 2\n\n\n", "\na = 1\n")) == "a = 1\ndef f():\n    return b\n"
    assert applied(text, block("a = 1\nb = 2\n\n\n\n\n", "a = 1")) == "a = 1\ndef f():\n    return b\n"
    assert applied(text, block("\n\nb = 2\n", "\n\nb = 3\n")) == text.replace("b = 2", "b = 3")


def test_of_several_places_only_one_that_may_change_counts() -> None:
    text = "x = 1\n# EVOLVE-BLOCK-START\nx = 1\ny = 1\n# EVOLVE-BLOCK-END"
    assert applied(text, block("x = 1", "x = 2")) == text.replace("START\nx = 1", "START\nx = 2")
    with pytest.raises(EditError, match="edit 1: its SEARCH text is at 2 places") as caught:
        applied(text.replace("y = 1", "x = 1"), block("x = 1", "x = 2"))
    assert caught.value.reason is Reason.SEVERAL_PLACES


def test_lines_are_compared_whole_but_for_space_at_their_ends() -> None:
    assert applied("max = 1\nx = 1  \n", block("x = 1", "x = 2")) == "max = 1\nx = 2\n"
    with pytest.raises(EditError):
        applied("max = 1\n", block("x = 1", "x = 2"))


def test_nothing_in_place_of_lines_takes_them_out() -> None:
    assert applied("a\nb\nc\n", "<<<<<<< SEARCH\nb\n=======\n>>>>>>> REPLACE") == "a\nc\n"


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (block("a = 1", "a = 2") + block("z = 1", "z = 2"), "edit 2: its SEARCH text is not in the program: 'z = 1'"),
        (block("a = 1", "a = 2") + block("import math", ""), "edit 2: it changes what is outside"),
        (block("print(a)", "print(b)"), "edit 1: it changes what is outside"),
        (block("a = 1", "# EVOLVE-BLOCK-END\nimport os\n# EVOLVE-BLOCK-START"), "edit 1: it changes what is outside"),
        (block("# EVOLVE-BLOCK-START\na = 1", "a = 1"), "edit 1: it puts the same text in place"),
        (block("", "a = 2"), "edit 1: it has nothing to search for"),
        ("<<<<<<< SEARCH\na = 1\n=======\na = 2\n", "edit 1: it has no line '>>>>>>> REPLACE'"),
        ("<<<<<<< SEARCH\na = 1\n>>>>>>> REPLACE\n", "edit 1: it has no line '======='"),
        ("<<<<<<< SEARCH\na = 1\n" + block("a = 1", "a = 2"), "edit 1: it has no line '======='"),
    ],
)
def test_what_can_not_be_applied_is_named_by_its_number(reply: str, says: str) -> None:
    with pytest.raises(EditError, match=says):
        applied(TEXT, reply)


def test_good_edits_among_bad_ones_are_made() -> None:
    found = find_edits(block("z = 1", "z = 2") + block("a = 1", "a = 2"))
    changed, left_out = apply_edits({"program.py": TEXT}, found)
    assert changed["program.py"] == TEXT.replace("a = 1", "a = 2")
    assert [each.reason for each in left_out] == [Reason.NOT_FOUND]


def test_marks_may_stand_among_the_lines_of_an_edit_that_keeps_them() -> None:
    edit = block("# EVOLVE-BLOCK-START\na = 1", "# EVOLVE-BLOCK-START\na = 2")
    assert applied(TEXT, edit) == TEXT.replace("a = 1", "a = 2")


def test_edits_of_several_files_name_them() -> None:
    files = {"program.py": "a = 1\n", "helper.py": "a = 1\n"}
    edit = block("a = 1", "a = 2")
    assert applied_to(files, f"FILE: helper.py\n{edit}") == {"program.py": "a = 1\n", "helper.py": "a = 2\n"}
    with pytest.raises(EditError, match="no line 'FILE: name' stands before it; the files are program"):
        applied_to(files, edit)
    with pytest.raises(EditError, match=r"edit 1: there is no file 'other\.py'"):
        applied_to(files, f"FILE: `other.py`\n{edit}")


LINES = st.lists(
    st.sampled_from(["a", "b", "  b", "c = 1", "", "}", "# d"]) | st.text("ab \t", max_size=4).map(str.rstrip),
    max_size=12,
)
"""Lines without space at their ends: an edit of nothing but that is none."""


@given(LINES, LINES)
@example(["a", "", ""], [])
def test_edits_between_two_texts_make_the_second_of_the_first(old: list[str], new: list[str]) -> None:
    if not any(line.strip() for line in old):
        old = [*old, "here"]
    before, after = "\n".join(old), "\n".join(new)
    edits = edits_between(before, after)
    if edits:
        reply = "Some words.\n" + "\n\n".join(map(str, edits)) + "\nMore words."
        assert [found.edit for found in find_edits(reply)] == edits
        assert applied(before, reply) == after
    else:
        assert before == after


@given(LINES, LINES, LINES, LINES, st.integers(0, 40), st.integers(1, 40))
def test_what_is_outside_of_marks_never_changes(
    above: list[str], within: list[str], below: list[str], new: list[str], start: int, size: int
) -> None:
    marks = "// EVOLVE-BLOCK-START", "// EVOLVE-BLOCK-END"
    text = "\n".join([*above, marks[0], *within, marks[1], *below])
    wanted = "\n".join([*above, marks[0], *new, marks[1], *below])
    edits = edits_between(text, wanted)
    assert (applied(text, "\n".join(map(str, edits))) if edits else text) == wanted
    anything = Edit(tuple(text.split("\n")[start : start + size]), tuple(new))
    try:
        changed = apply_edit(text, anything)
    except EditError:
        return
    assert outside_unchanged(text, changed)
