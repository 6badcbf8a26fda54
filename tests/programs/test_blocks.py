"""What of a program may change."""

from __future__ import annotations

import pytest

from flowevolve.programs.blocks import evolvable_lines, has_marks, outside_unchanged

MARKED = "import math\n# EVOLVE-BLOCK-START\na = 1\n# EVOLVE-BLOCK-END\nb = 2\n  // EVOLVE-BLOCK-START here\nc = 3"


def test_blocks_are_the_lines_between_marks_behind_any_comment_leader() -> None:
    assert [list(block) for block in evolvable_lines(MARKED)] == [[2], [6]]
    assert [list(block) for block in evolvable_lines("a\nb")] == [[0, 1]]
    assert not has_marks("print('EVOLVE-BLOCK-START')")


@pytest.mark.parametrize(
    ("old", "new", "unchanged"),
    [
        (MARKED, MARKED.replace("a = 1", "a = 2\na = 3").replace("c = 3", ""), True),
        (MARKED, MARKED.replace("b = 2", "b = 2  "), True),
        (MARKED, MARKED.replace("b = 2", "b = 3"), False),
        (MARKED, MARKED.replace("import math\n", ""), False),
        (MARKED, MARKED.replace("# EVOLVE-BLOCK-END\n", ""), False),
        (MARKED, "a = 1", False),
        ("a = 1", "b = 1", True),
        ("a = 1", MARKED, False),
    ],
)
def test_outside_is_what_marks_do_not_enclose(old: str, new: str, unchanged: bool) -> None:
    assert outside_unchanged(old, new) is unchanged
