"""What the agents that deal in abstracts are asked, and how their replies are read."""

from __future__ import annotations

import json

import pytest

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.abstracts import (
    ABSTRACT,
    EXEMPLARS_TITLE,
    NAVIGATE_TITLE,
    SUMMARIZE_TITLE,
    Example,
    Summary,
    Trajectory,
    exemplars_prompt,
    navigate_prompt,
    read_examples,
    read_guidance,
    read_summary,
    summarize_prompt,
)
from flowevolve.prompts.programs import REPLY_HEADING, ShownProgram
from flowevolve.prompts.reading.fences import labelled_blocks
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.code.prompt import sections

WORDS = ShownProgram({ABSTRACT: "A greedy scan."}, 0.25)
FAILED = ShownProgram({ABSTRACT: "A search by halves."}, None)


def shown(prompt: str) -> list[tuple[str, str]]:
    return labelled_blocks(prompt.partition(REPLY_HEADING)[0])


def test_the_summarizer_sees_the_parents_abstract_and_the_childs_code() -> None:
    prompt = summarize_prompt(SHIPPED, {"program.py": "x = 1\n"}, "A greedy scan.")
    assert prompt.startswith(SUMMARIZE_TITLE)
    assert shown(prompt) == [(ABSTRACT, "A greedy scan."), ("program.py", "x = 1")]
    assert shown(summarize_prompt(SHIPPED, {"program.py": "x = 1\n"})) == [("program.py", "x = 1")]


def test_the_navigator_sees_each_program_once_and_trajectories_by_kind() -> None:
    trajectories = [
        Trajectory("improvement", ("a", "b"), (0.5,)),
        Trajectory("decline", ("b", "c"), (None,)),
        Trajectory("improvement", ("a", "b", "d"), (0.5, 0.25)),
    ]
    prompt = navigate_prompt(SHIPPED, "Sort.", {"a": WORDS, "c": FAILED}, trajectories)
    assert prompt.startswith(NAVIGATE_TITLE)
    assert "### Program a\nScore: 0.25 (higher is better)\n```abstract\nA greedy scan.\n```" in prompt
    assert "### Program c\nScore: none, it failed\n" in prompt
    assert "## Consistent improvement\n- a -> b (+0.5)\n- a -> b (+0.5) -> d (+0.25)\n" in prompt
    assert "## Consistent decline\n- b -> c (failed)\n" in prompt
    assert "## Mixed" not in prompt


def test_the_sampler_sees_the_parent_the_direction_and_the_programs() -> None:
    prompt = exemplars_prompt(SHIPPED, "Sort.", WORDS, {"c": FAILED}, 3, "Try halves.")
    assert prompt.startswith(EXEMPLARS_TITLE)
    assert "```\nTry halves.\n```" in sections(prompt)["## The direction"]
    assert prompt.index("A greedy scan.") < prompt.index("### Program c") < prompt.index("at most 3")
    assert "## The direction" not in exemplars_prompt(SHIPPED, "Sort.", WORDS, {"c": FAILED}, 3)


def test_a_summary_is_shown_with_its_traits() -> None:
    reply = json.dumps({"inherited": ["a scan", " ", "a scan"], "new": [], "abstract": " Halves. "})
    assert read_summary(f"Here:\n```json\n{reply}\n```") == Summary(abstract="Halves.", inherited=("a scan",), new=())
    assert (
        str(Summary(abstract="Halves.", inherited=("a scan",), new=("a cut", "a sum")))
        == "Halves.\nInherited: a scan\nNew: a cut; a sum"
    )


def test_what_a_model_writes_too_long_is_cut() -> None:
    long = read_summary(
        json.dumps({"inherited": ["y" * 999], "new": ["z"] * 3 + list("abcdefghijklmno"), "abstract": "x" * 9999})
    )
    assert len(str(long)) < 3600
    assert len(long.new) == 8
    assert len(read_guidance(json.dumps({"guidance": "x" * 9999}))) == 1500


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("I would rather not.", "no JSON"),
        ('{"inherited": [], "new": []}', "'abstract' is missing"),
        ('{"inherited": [], "abstract": "x"}', "'new' is missing"),
    ],
)
def test_a_summary_without_its_parts_can_not_be_read(reply: str, words: str) -> None:
    with pytest.raises(UnparsableReplyError, match=words):
        read_summary(reply)


def test_guidance_has_to_be_there() -> None:
    assert read_guidance('{"guidance": "Go left."}') == "Go left."
    with pytest.raises(UnparsableReplyError, match="'guidance' is missing"):
        read_guidance('{"guidance": ""}')


def test_examples_are_those_that_were_shown() -> None:
    reply = '{"chosen": [{"id": "Program a", "why": "x"}, {"id": "z"}, {"id": "a"}, {"id": "b"}, {"id": "c"}]}'
    assert read_examples(reply, ("a", "b", "c"), 2) == (Example("a", "x"), Example("b", ""))
    assert read_examples('{"chosen": []}', ("a",), 2) == ()
    assert read_examples('{"chosen": ["Program b", {"id": "a"}]}', ("a", "b"), 2) == (
        Example("b", ""),
        Example("a", ""),
    )
    with pytest.raises(UnparsableReplyError, match="none of the programs"):
        read_examples(reply, ("q",), 2)
    with pytest.raises(UnparsableReplyError, match="'chosen' is missing"):
        read_examples("{}", ("a",), 2)
    with pytest.raises(UnparsableReplyError, match="none of the programs"):
        read_examples('{"chosen": ["z", 1, null]}', ("a",), 2)
