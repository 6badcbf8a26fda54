"""Whole programs as replies have them, put into a parent of which only what is between marks may change."""

from __future__ import annotations

import pytest

from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.prompts.reading.children import read_child

START, END = "// EVOLVE-BLOCK-START\n", "// EVOLVE-BLOCK-END\n"
OLD, NEW = "int best(int a) { return a; }\n", "int best(int a) { return std::max(a, 2); }\n"
MAIN = "int main() {\n    return best(1);\n}\n"
CPP = f"#include <vector>\nint limit = 3;\n\n{START}{OLD}{END}\n{MAIN}"
IMPROVED = CPP.replace(OLD, NEW)
PYTHON = '''"""Packs circles."""
import math

# EVOLVE-BLOCK-START
def best(a):
    return a
# EVOLVE-BLOCK-END


# how it is called
def run():
    return best(1)


if __name__ == "__main__":
    print(run())
'''


def taken(program: str, parent: str = CPP, name: str = "program.cpp") -> tuple[str, list[Reason]]:
    """The program that a reply comes to, and why something of it was left out."""
    read = read_child(f"```{name.rpartition('.')[2]}\n{program}```", {name: parent}, "whole")
    return read.files[name], [each.reason for each in read.left_out]


def unmarked(program: str) -> str:
    return "\n".join(line for line in program.split("\n") if "EVOLVE-BLOCK" not in line)


@pytest.mark.parametrize("marks", [True, False], ids=["with marks", "without"])
def test_what_a_program_includes_anew_is_taken_into_the_block(marks: bool) -> None:
    program = IMPROVED.replace("#include <vector>\n", "#include <vector>\n#include <algorithm>\n")
    wanted = CPP.replace(OLD, f"#include <algorithm>\n{NEW}")
    assert taken(program if marks else unmarked(program)) == (wanted, [])


def test_without_marks_the_block_is_what_stands_between_the_lines_around_it() -> None:
    assert taken(unmarked(IMPROVED)) == (IMPROVED, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [("return best(1)", "return best(2)"), ("#include <vector>\n", "#include <vector>\nint other = 1;\n")],
    ids=["below", "above"],
)
def test_without_marks_a_change_around_the_block_is_left_out_where_the_lines_next_to_it_are_there(
    old: str, new: str
) -> None:
    assert taken(unmarked(IMPROVED.replace(old, new))) == (IMPROVED, [Reason.FROZEN])


@pytest.mark.parametrize(
    ("old", "new"), [("int main() {", "int main(int argc) {"), ("limit = 3", "limit = 4")], ids=["below", "above"]
)
def test_without_marks_nothing_is_taken_where_the_lines_next_to_the_block_have_changed(old: str, new: str) -> None:
    parent = CPP.replace("#include <vector>", "#include <vector>\nint least = 0;")
    with pytest.raises(UnparsableReplyError, match="keep the marks") as caught:
        taken(unmarked(parent.replace(OLD, NEW).replace(old, new)), parent)
    assert caught.value.reason is Reason.FROZEN


def test_a_block_whose_end_was_forgotten_ends_where_the_rest_of_the_program_begins() -> None:
    assert taken(IMPROVED.replace(END, ""))[0] == IMPROVED
    assert taken(IMPROVED.replace(END, "").replace("best(1)", "best(2)"))[0] == IMPROVED


def test_of_python_without_marks_the_statements_that_stand_for_the_frozen_ones_are_left_out() -> None:
    changed = PYTHON.replace("return a\n", "return math.sqrt(a)\n")
    rest = changed.replace("Packs circles.", "Packs more.").replace("print(run())", "print('so', run())")
    assert taken(unmarked(changed), PYTHON, "program.py") == (changed, [])
    assert taken(unmarked(rest), PYTHON, "program.py") == (changed, [Reason.FROZEN])


def test_python_without_marks_that_lacks_what_the_rest_needs_is_not_taken() -> None:
    with pytest.raises(UnparsableReplyError, match="lacks best, which the rest of the program needs") as caught:
        taken(unmarked(PYTHON).replace("def best(a)", "def better(a)"), PYTHON, "program.py")
    assert caught.value.reason is Reason.ELIDED


INDENTED = '''
def prompt():
    # EVOLVE-BLOCK-START
    text = """
Write a report.
"""
    # EVOLVE-BLOCK-END
    return text
'''
BLOCK = '    text = """\n# Report\nWrite a short report.\n"""\n'
SHORTER = INDENTED.replace('    text = """\nWrite a report.\n"""\n', BLOCK)


@pytest.mark.parametrize(
    "program",
    [SHORTER, f"# EVOLVE-BLOCK-START\n{BLOCK}# EVOLVE-BLOCK-END\n", BLOCK.removeprefix("    ")],
    ids=["whole", "the block with its marks", "the block alone, without its indentation"],
)
def test_lines_of_a_text_inside_of_an_indented_block_stay_as_they_are(program: str) -> None:
    assert taken(program, INDENTED, "program.py") == (SHORTER, [])


def test_an_import_beside_an_indented_block_is_indented_alone() -> None:
    text, _ = taken(f"import math\n\n\n{SHORTER.strip()}\n", INDENTED, "program.py")
    assert text == SHORTER.replace("START\n", "START\n    import math\n")
