"""Prompts for programs, and what is made of replies."""

from __future__ import annotations

import pytest

from flowevolve._util.errors import EngineError
from flowevolve.core.artifact import Artifact
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.programs.edits import EditError
from flowevolve.prompts.programs import (
    ADVICE_HEADING,
    ANCESTORS_HEADING,
    OTHERS_HEADING,
    ShownProgram,
    program_prompt,
    read_program,
    seed_prompt,
)
from flowevolve.prompts.reading.children import Form, read_child
from flowevolve.prompts.shipped import SHIPPED

ONE = Artifact({"program.py": "# EVOLVE-BLOCK-START\na = 1\n# EVOLVE-BLOCK-END\n"}, kind="program")
TWO = Artifact({"program.py": "import helper\n", "helper.py": "a = 1\n"}, kind="program")
EDIT = "<<<<<<< SEARCH\na = 1\n=======\na = 2\n>>>>>>> REPLACE"


def test_a_prompt_has_what_is_given_and_nothing_else() -> None:
    bare = program_prompt(SHIPPED, "Be quick.", ShownProgram(ONE, 0.5, "too slow"), form="edits")
    assert "Be quick." in bare
    assert ONE["program.py"] in bare
    assert "Score: 0.5" in bare
    assert "too slow" in bare
    assert SHIPPED.text("program_how") in bare
    assert "EVOLVE-BLOCK" in bare.split("## What to write")[1]
    for heading in (ADVICE_HEADING, OTHERS_HEADING, ANCESTORS_HEADING):
        assert heading not in bare
    full = program_prompt(
        SHIPPED,
        "Be quick.",
        ShownProgram(TWO, None),
        form="whole",
        others=[ShownProgram({"program.py": "other"}, 1.0)],
        ancestors=[ShownProgram({"program.py": "older"}, 0.1)],
        advice="try harder",
        instructions="as you like",
    )
    assert "Score: none, it failed" in full
    assert SHIPPED.text("program_how") not in full
    assert "EVOLVE-BLOCK" not in full
    for text in ("other", "older", "try harder", "as you like"):
        assert f"\n{text}\n" in full


def test_what_a_template_has_no_field_for_is_never_dropped() -> None:
    parent = ShownProgram(ONE, 0.5)
    with pytest.raises(EngineError, match="'program_variant' has no field for others"):
        program_prompt(SHIPPED, "Be quick.", parent, form="edits", change="variant", others=[parent])


@pytest.mark.parametrize("form", ["edits", "whole"])
def test_the_example_in_a_prompt_is_a_reply_that_can_be_read(form: Form) -> None:
    example = SHIPPED.text(f"form_{form}", named=SHIPPED.text("form_named"))
    old = "def area(width, height):\n    return width + height\n" if form == "edits" else "total = sum\n"
    child = read_program(example, Artifact({"program.py": old}, "program"), form)["program.py"]
    assert ("width * height" if form == "edits" else "math.fsum") in child


def test_a_prompt_for_a_seed_shows_what_failed_and_why() -> None:
    prompt = seed_prompt(
        SHIPPED, "Be quick.", [ShownProgram(ONE, 0.5), ShownProgram({"program.py": "bad"}, None, "NameError: x")]
    )
    assert "Score: none, it failed" in prompt
    assert "NameError: x" in prompt


def test_replies_with_edits_and_whole_programs_are_read() -> None:
    wanted = ONE["program.py"].replace("a = 1", "a = 2")
    assert read_program(f"So:\n{EDIT}\nDone.", ONE, "edits")["program.py"] == wanted
    assert read_program(f"So:\n```python\n{wanted}```\n`a` is `2`.", ONE, "whole")["program.py"] == wanted
    assert read_program(f"```\nx\n```\n```python\n{wanted}\n\n```", ONE, "whole")["program.py"] == wanted
    assert read_program(f"```python\n{wanted}", ONE, "whole")["program.py"] == wanted


def test_of_several_files_those_change_that_are_named() -> None:
    changed = TWO.replace(**{"helper.py": "a = 2\n"})
    assert read_program(f"FILE: helper.py\n{EDIT}", TWO, "edits") == changed
    assert read_program("```helper.py\na = 2\n```", TWO, "whole") == changed


MAIN = "from util import dist\n\ndef solve(a, b):\n    return dist(a, b)\n"
UTIL = "def dist(a, b):\n    return abs(a - b)\n"


@pytest.mark.parametrize(
    ("main", "util"),
    [
        (MAIN.replace("dist", "distance"), "def distance(a, b):\n    return (a - b) ** 2\n"),
        (f"{UTIL}\ndef solve(a, b):\n    return dist(a, b)\n", "# nothing is left\n"),
        ("def solve(a, b):\n    return abs(a - b)\n", "from math import hypot\n\ndef norm(a):\n    return hypot(a)\n"),
    ],
    ids=["renamed", "moved", "another helper"],
)
def test_what_a_file_defined_may_be_gone_where_the_program_is_there(main: str, util: str) -> None:
    parent = Artifact({"main.py": MAIN, "util.py": UTIL}, kind="program")
    reply = f"main.py\n```python\n{main}```\n\nutil.py\n```python\n{util}```"
    assert dict(read_program(reply, parent, "whole")) == {"main.py": main, "util.py": util}


def test_a_program_of_several_files_that_has_nothing_of_its_parent_is_another_one() -> None:
    parent = Artifact({"main.py": MAIN, "util.py": UTIL}, kind="program")
    other = "```python\ndef total(numbers):\n    return sum(numbers)\n```"
    with pytest.raises(UnparsableReplyError, match="another program") as caught:
        read_program(f"main.py\n{other}\nutil.py\n{other}", parent, "whole")
    assert caught.value.reason is Reason.WRONG_FORM


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("```python\n" + ONE["program.py"].replace("a = 1", "a = (") + "```", r"program\.py does not compile: line 2"),
        ("I can't.", "no fenced block"),
        ("```\n```", "no fenced block with a program"),
    ],
)
def test_what_is_no_program_is_refused(reply: str, says: str) -> None:
    with pytest.raises(UnparsableReplyError, match=says):
        read_program(reply, ONE, "whole")


def test_an_edit_that_breaks_the_syntax_is_refused_but_other_languages_are_not_looked_at() -> None:
    broken = EDIT.replace("a = 2", "a = (")
    with pytest.raises(UnparsableReplyError, match="does not compile"):
        read_program(broken, ONE, "edits")
    script = Artifact({"program.sh": "a = 1\n"}, kind="program")
    assert read_program(broken, script, "edits")["program.sh"] == "a = (\n"
    with pytest.raises(EditError):
        read_program("no edit", ONE, "edits")


def test_of_edits_those_that_can_be_made_are_or_all_or_none() -> None:
    reply = f"{EDIT}\n{EDIT.replace('a =', 'b =')}"
    read = read_child(reply, ONE, "edits")
    assert read.files["program.py"] == ONE["program.py"].replace("a = 1", "a = 2")
    assert [each.reason for each in read.left_out] == [Reason.NOT_FOUND]
    assert read.left_out[0].message.startswith("edit 2: ")
    with pytest.raises(EditError, match="1 of 2 edits can't be applied: edit 2: ") as caught:
        read_child(reply, ONE, "edits", all_edits=True)
    assert caught.value.reason is Reason.NOT_FOUND


def test_what_was_changed_outside_of_marks_is_told() -> None:
    read = read_child(f"```python\nimport os\nprint(1)\n{ONE['program.py']}```", ONE, "whole")
    assert read.files["program.py"] == ONE["program.py"].replace("a = 1", "import os\na = 1")
    assert [each.reason for each in read.left_out] == [Reason.FROZEN]
