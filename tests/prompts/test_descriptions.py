"""The name and the idea that a reply gives to its program."""

from __future__ import annotations

import pytest

from flowevolve.core.artifact import Artifact
from flowevolve.prompts.programs import ShownProgram, program_prompt, read_program, seed_prompt
from flowevolve.prompts.reading.children import Form
from flowevolve.prompts.reading.descriptions import Description, read_description
from flowevolve.prompts.shipped import SHIPPED

PARENT = Artifact({"program.py": "import math\nvalue = 1\nother = 1\n"}, "program")
EDIT = "<<<<<<< SEARCH\nvalue = 1\n=======\nvalue = 2\n>>>>>>> REPLACE"
SAID = Description("Two", "Two is more than one.")


@pytest.mark.parametrize(
    "reply",
    [
        f"Name: Two\nIdea: Two is more than one.\n\n{EDIT}",
        f"<think>Name: Three</think>\n**Name:** Two\n**Idea:** Two is more than one.\n{EDIT}",
        f"Here it is.\n- name: `Two`\n- idea: Two is  more than one.\n{EDIT}",
        f"**Name:**\nTwo\n\n**Idea:**\nTwo is more than one.\n\n{EDIT}",
        f"### Name\n\nTwo\n\n### Idea\n\nTwo is more than one.\n\n{EDIT}",
        f"Name: *Two*\n**Idea: Two is more than one.**\n{EDIT}",
        "Idea: Two is more than one.\nName: Two\n```python\nimport math\nvalue = 2\nother = 1\n```\nName: No",
        "Name: Two\r\nIdea: Two is more than one.\r\nimport math\r\nvalue = 2\r\nother = 1\r\n",
    ],
)
def test_they_are_read_and_the_program_is_what_it_was(reply: str) -> None:
    said, rest = read_description(reply)
    assert said == SAID
    assert "Two" not in rest
    form: Form = "edits" if "SEARCH" in reply else "whole"
    assert read_program(rest, PARENT, form)["program.py"] == "import math\nvalue = 2\nother = 1\n"


@pytest.mark.parametrize(
    "reply",
    [
        EDIT,
        "",
        "<think>no end",
        "I change it.\n```\nName: no\nIdea: no\n```",
        f"Name:\n{EDIT}",
        "name: str = 'x'\nvalue = 2",
        f"The fields of a row:\n- name\n- age\n{EDIT}",
        f"{EDIT}\nName: too late\nIdea: too late",
    ],
)
def test_a_reply_without_them_is_as_it_was(reply: str) -> None:
    assert read_description(reply) == (Description(), reply)


def test_an_idea_that_names_drafts_leaves_out_no_edit() -> None:
    two = f"{EDIT}\n\n{EDIT.replace('value', 'other')}"
    _, rest = read_description(f"Idea: my first attempt, a rejected draft:\n{two}")
    assert read_program(rest, PARENT, "edits")["program.py"] == "import math\nvalue = 2\nother = 2\n"


def test_one_alone_will_do_and_both_are_short() -> None:
    said, _ = read_description(f"Name: {'n' * 1000}\n{EDIT}")
    assert said == Description("n" * 80)
    said, _ = read_description(f"Idea: {'i' * 1000}\n{EDIT}")
    assert said == Description("", "i" * 300)


def test_prompts_ask_for_them_and_show_them_beside_other_programs() -> None:
    other = ShownProgram(PARENT, 1.0, name="Two", idea="More.")
    prompt = program_prompt(
        SHIPPED, "Do it.", other, form="edits", others=[other], ancestors=[ShownProgram(PARENT, 2.0)]
    )
    assert SHIPPED.text("form_named") in prompt
    assert prompt.count("### Program 1\nName: Two\nIdea: More.\nScore: 1.0") == 1
    assert "### Version 1\nScore: 2.0" in prompt
    assert "Name: Two" in seed_prompt(SHIPPED, "Do it.", [other])
