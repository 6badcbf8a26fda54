"""Templates: what a prompt written from one says, and how it is kept short."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import EngineError, InputError
from flowevolve.core.templates import LEAST_CHARACTERS, Prompt, Shorten, Template, Templates

TEXT = """\
# A title

Look at {what}, as {"json": 1} and { this } are no fields.
{remark}

## Always
Say something.

## Others
{others}
"""


def templates(text: str = TEXT, max_tokens: int = 1000) -> Templates:
    return Templates({"look": Template("look", text)}, max_tokens, 100)


def test_fields_are_filled_in_once() -> None:
    prompt = Template("look", TEXT).fill({"what": "{others}", "remark": "And well.", "others": "x"})
    assert prompt == (
        '# A title\n\nLook at {others}, as {"json": 1} and { this } are no fields.\nAnd well.\n\n'
        "## Always\nSay something.\n\n## Others\nx"
    )


def test_a_section_and_a_line_with_nothing_but_empty_fields_are_left_out() -> None:
    prompt = Template("look", TEXT).fill({"what": "it", "remark": "", "others": ""})
    assert prompt == (
        '# A title\n\nLook at it, as {"json": 1} and { this } are no fields.\n\n## Always\nSay something.'
    )


def test_a_prompt_names_the_version_of_its_template() -> None:
    one, other = Template("look", TEXT), Template("look", TEXT.replace("Say", "Do"))
    assert one.fill({"what": "", "remark": "", "others": ""}).template == one.version
    assert one.version.startswith("look@")
    assert one.version != other.version


def test_a_field_that_is_missing_or_unknown_is_an_error_of_the_program() -> None:
    with pytest.raises(EngineError, match="has fields"):
        Template("look", TEXT).fill({"what": "it"})


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=5))
def test_the_longest_texts_are_shortened_until_the_prompt_fits(lengths: list[int]) -> None:
    def fields(shorten: Shorten) -> Mapping[str, str]:
        return {"what": "it", "remark": "", "others": "|".join(shorten("x" * length) for length in lengths)}

    prompt = templates(max_tokens=1000).write("look", fields)
    parts = prompt.partition("## Others\n")[2].split("|")
    assert len(prompt) <= 4000
    for length, part in zip(lengths, parts, strict=True):
        assert part == "x" * length or (part.count("x") < length and "characters left out" in part)
    kept = {part.count("x") for length, part in zip(lengths, parts, strict=True) if part != "x" * length}
    assert len(kept) <= 1


def test_no_text_is_made_shorter_than_can_be_understood() -> None:
    prompt = templates(max_tokens=10).write("look", lambda shorten: _fields(shorten("x" * 5000)))
    assert prompt.count("x") == LEAST_CHARACTERS
    assert isinstance(prompt, Prompt)


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ({"looks": "x"}, "own: there is no template 'looks'; there are look"),
        (
            {"look": "{what} {others}"},
            "own: template 'look' lacks the field {remark}; its fields are {others}, {remark}",
        ),
        ({"look": TEXT + "{more}"}, "own: template 'look' has no field {more}; its fields are"),
    ],
)
def test_a_template_of_ones_own_has_the_fields_of_the_one_it_replaces(own: Mapping[str, str], problem: str) -> None:
    with pytest.raises(InputError) as raised:
        templates().replaced(own, "own", 1000, 100)
    assert str(raised.value).startswith(problem)


def test_a_template_of_ones_own_is_used() -> None:
    replaced = templates().replaced({"look": "{what}{remark}{others}"}, "own", 1000, 100)
    assert replaced.write("look", lambda shorten: _fields("!")) == "it!"
    assert replaced["look"].version != templates()["look"].version


def _fields(others: str) -> Mapping[str, str]:
    return {"what": "it", "remark": "", "others": others}
