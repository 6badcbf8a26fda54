"""Replies of 100,000 characters that a search which starts again at each of them would not get through."""

from __future__ import annotations

import pytest

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.playbook import parse_lesson
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reading.notes import tags_in
from flowevolve.prompts.reading.programs import read_whole

LENGTH = 100_000


@pytest.mark.parametrize(
    "end",
    [
        "\nChanges made:\n" * (LENGTH // 15) + "\n# End\nReturn the answer.",
        "\n## Key changes\n" * (LENGTH // 16) + "\n# End\nReturn the answer.",
        "\n---" + "\n" * LENGTH + "Return the answer.",
        "\n##" + " \n" * (LENGTH // 2) + "Return the answer.",
        "\nThe prompt" + "*" * LENGTH + "!",
    ],
    ids=["names", "headings", "a rule and blank lines", "a mark and blank lines", "stars"],
)
def test_an_instruction_is_read_to_its_end(end: str) -> None:
    assert read_instruction(f"You solve sums.\n{end}") == f"You solve sums.\n{end}"


def test_a_line_of_stars_behind_a_name_introduces_nothing() -> None:
    with pytest.raises(UnparsableReplyError):
        read_instruction("The new prompt" + "*" * LENGTH + "!")


def test_each_function_of_a_program_may_be_said_to_be_unchanged() -> None:
    names = [f"step_{number}" for number in range(LENGTH // 40)]
    parent = "".join(f"def {name}():\n    pass\n" for name in names)
    said = "".join(f"# {name} unchanged\n" for name in [*names, *names])
    program = f"{parent}{said}"
    assert read_whole(f"```python\n{program}```", {"program.py": parent}).files == {"program.py": program}


@pytest.mark.parametrize("line", ["-" * LENGTH, "none" + "-" * LENGTH, "*" * LENGTH + "none"])
def test_lessons_may_have_long_rules(line: str) -> None:
    assert parse_lesson(f"Lesson: {line} x", ()).lessons


@pytest.mark.parametrize("between", ["*", "*_", "]", " "])
def test_what_follows_a_tag_may_be_long(between: str) -> None:
    rest = between * (LENGTH // len(between))
    assert tags_in(f"gen-00001{rest}x", ["gen-00001"]) == {}
    assert tags_in(f"gen-00001 helpful{rest}x", ["gen-00001"]) == {"gen-00001": "helpful"}


def test_a_tag_may_have_many_slashes_behind_it() -> None:
    assert tags_in("gen-00001 helpful " + "/ " * (LENGTH // 2), ["gen-00001"]) == {"gen-00001": "helpful"}
