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


@pytest.mark.parametrize("mark", ["SEARCH (lines 1-1)", "SEARCH (line 1):", "search (a)"])
def test_a_remark_in_brackets_may_follow_the_word_of_a_mark(mark: str) -> None:
    reply = EDIT.replace("SEARCH", mark).replace(">>>>>>> REPLACE", ">>>>>>> REPLACE (more of it)")
    assert read_program(reply, ONE, "edits")["program.py"] == ONE["program.py"].replace("a = 1", "a = 2")


def test_a_block_of_another_kind_alone_is_no_program() -> None:
    rust = Artifact({"main.rs": "fn main() {\n    solve();\n}\n"}, kind="program")
    for label in ("bash", "json", "toml", "diff"):
        with pytest.raises(UnparsableReplyError, match="no fenced block with a program"):
            read_program(f"Run it:\n```{label}\ncargo run --release\n```", rust, "whole")
    for label in ("rust", "", "text"):
        assert read_program(f"```{label}\nfn main() {{}}\n```", rust, "whole")["main.rs"] == "fn main() {}\n"
    table = Artifact({"weights.json": '{"a": 1}\n'}, kind="program")
    assert read_program('```json\n{"a": 2}\n```', table, "whole")["weights.json"] == '{"a": 2}\n'


def test_of_several_files_those_change_that_are_named() -> None:
    changed = TWO.replace(**{"helper.py": "a = 2\n"})
    assert read_program(f"FILE: helper.py\n{EDIT}", TWO, "edits") == changed
    assert read_program("```helper.py\na = 2\n```", TWO, "whole") == changed


SEVERAL = Artifact(
    {
        "program.py": "import helper\n\n\ndef solve(n):\n    return helper.gain(n)\n",
        "parts/helper.py": "def gain(n):\n    g = 2\n    return g * n\n",
        "parts/other.py": "def other(n):\n    g = 2\n    return n + g\n",
    },
    kind="program",
)
GAIN = "<<<<<<< SEARCH\n    g = 2\n=======\n    g = 3\n>>>>>>> REPLACE"
HELPER = SEVERAL["parts/helper.py"].replace("2", "3")


@pytest.mark.parametrize(
    "above",
    [
        "FILE: parts/helper.py\n",
        "FILE: ./parts/helper.py (the gain)\n",
        "### 1. FILE: parts/helper.py\n",
        "### parts/helper.py\n```python\n",
        "**`parts/helper.py`** (updated)\n\n",
        "parts/helper.py\n",
        "```python parts/helper.py\n",
        "In `parts/helper.py`, a larger gain is better, as the total grows with it:\n\n",
        "FILE: program.py\n<<<<<<< SEARCH\nimport helper\n=======\nimport helper\n\n>>>>>>> REPLACE\n\n## parts/helper.py\n",
    ],
)
def test_an_edit_is_of_the_file_that_is_named_above_it(above: str) -> None:
    fence = "\n```" if "```" in above else ""
    assert read_program(f"{above}{GAIN}{fence}", SEVERAL, "edits")["parts/helper.py"] == HELPER


def test_an_edit_without_a_file_is_made_where_alone_it_can_be() -> None:
    reply = GAIN.replace("    g = 2\n", "    g = 2\n    return g * n\n").replace("g = 3", "g = 3\n    return g * n")
    assert read_program(reply, SEVERAL, "edits")["parts/helper.py"] == HELPER
    for unclear in (GAIN, f"FILE: parts/other.py\n{reply}", f"Both helper.py and other.py are slow:\n{GAIN}"):
        with pytest.raises(UnparsableReplyError):
            read_program(unclear, SEVERAL, "edits")


@pytest.mark.parametrize(
    "above",
    [
        "```python:parts/helper.py\n",
        '```python title="parts/helper.py"\n',
        "### 2. parts/helper.py\n```python\n",
        "#### `parts/helper.py` (updated)\n```python\n",
        "#### `parts/helper.py`\nThe gain is larger now.\n\n```python\n",
    ],
)
def test_a_block_is_the_file_that_its_label_or_heading_names(above: str) -> None:
    assert read_program(f"{above}{HELPER}```", SEVERAL, "whole") == SEVERAL.replace(**{"parts/helper.py": HELPER})


@pytest.mark.parametrize(
    "beside",
    [
        "In `parts/helper.py` I changed:\n```python\n    g = 3\n```\n",
        "Use `parts/helper.py` like this:\n```python\nfrom parts import helper\nprint(helper.gain(1))\n```\n",
        "Run `program.py`:\n```bash\npython program.py\n```\n",
        "The output of `program.py`:\n```\n0.93\n```\n",
    ],
)
def test_a_block_that_only_speaks_of_a_file_is_not_that_file(beside: str) -> None:
    wanted = SEVERAL.replace(**{"parts/helper.py": HELPER})
    whole = f"```parts/helper.py\n{HELPER}```\n"
    assert read_program(whole + beside, SEVERAL, "whole") == wanted
    assert read_program(beside + whole, SEVERAL, "whole") == wanted
    with pytest.raises(UnparsableReplyError, match="no fenced block"):
        read_program(beside, SEVERAL, "whole")


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


def test_a_block_with_two_files_is_neither_of_them() -> None:
    parent = {"main.py": "from util import f\nprint(f(1))\n", "util.py": "def f(x):\n    return x\n"}
    reply = "```python\n# main.py\nfrom util import f\nprint(f(2))\n\n# util.py\ndef f(x):\n    return 2 * x\n```"
    with pytest.raises(UnparsableReplyError, match=r"main\.py has util\.py in it, too"):
        read_child(reply, parent, "whole")


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


def test_a_method_without_a_body_is_no_function_of_the_same_name_that_was_emptied() -> None:
    old = "def helper(y):\n    return y\n\n\ndef act():\n    return helper(1)\n"
    new = "class Helps:\n    def helper(self, y): ...\n\n\ndef act():\n    pass  # the existing callers ignore it\n"
    assert read_program(f"```python\n{new}```", Artifact({"program.py": old}, "program"), "whole")["program.py"] == new
