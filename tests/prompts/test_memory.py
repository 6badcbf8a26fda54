"""What agents of memory are asked, and what is read out of their replies."""

from __future__ import annotations

import json

import pytest

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.memory import (
    DIRECTIONS_KEPT,
    LESSONS_KEPT,
    TEXT_CHARS,
    Advice,
    Digest,
    Direction,
    Insight,
    Lesson,
    Step,
    compress_prompt,
    distill_prompt,
    queries_prompt,
    read_advice,
    read_digest,
    read_insight,
    read_queries,
    reflect_prompt,
    shown_board,
    shown_memory,
)
from flowevolve.prompts.programs import ShownProgram
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.code.prompt import all_programs, hinted, sections

PARENT = ShownProgram({"program.py": "x = 1"}, 0.5, "slow")
CHILD = ShownProgram({"program.py": "x = 2"}, None, "crashed")
LOOPS = Direction("loops unrolled", "success")


def test_a_reflection_sees_both_programs_and_the_change() -> None:
    prompt = reflect_prompt(SHIPPED, "Be fast.", PARENT, CHILD, -0.5)
    assert prompt.startswith("# Learn from a change\n")
    assert [(seen.program["program.py"], seen.score) for seen in all_programs(prompt)] == [
        ("x = 1", 0.5),
        ("x = 2", None),
    ]
    assert "Change: -0.5" in sections(prompt)["## How the score changed"]
    assert "did not help" in prompt
    assert list(sections(prompt))[-1] == "## What to write"


def test_a_reflection_sees_the_board_so_that_a_direction_keeps_its_name() -> None:
    board = shown_board([(LOOPS, 3), (Direction("fewer calls", "failed"), 1)])
    parts = sections(reflect_prompt(SHIPPED, "Be fast.", PARENT, CHILD, -0.5, board))
    assert parts["## Directions that were tried"].strip() == (
        "```\n- loops unrolled (success, 3 times)\n- fewer calls (failed, once)\n```"
    )
    assert "use the words of the list" in parts["## What to write"]
    assert [seen.score for seen in all_programs(reflect_prompt(SHIPPED, "", PARENT, CHILD, 0.0, board))] == [0.5, None]
    without = reflect_prompt(SHIPPED, "Be fast.", PARENT, CHILD, -0.5)
    assert without == reflect_prompt(SHIPPED, "Be fast.", PARENT, CHILD, -0.5, shown_board([]))
    assert "## Directions that were tried" not in sections(without)


def test_an_insight_is_read_on_one_line_and_cut() -> None:
    reply = json.dumps({"direction": "other\n loops", "outcome": "Failed", "lesson": "why\n" + "x" * 9999})
    insight = read_insight(reply)
    assert insight.direction == Direction("other loops", "failed")
    assert len(insight.lesson) == TEXT_CHARS
    with pytest.raises(UnparsableReplyError, match="'lesson' is missing"):
        read_insight('{"direction": "a", "outcome": "neutral"}')


def test_a_memory_goes_to_its_compressor_in_the_form_that_comes_back() -> None:
    digest = Digest(((LOOPS, 3),), (Lesson("failed", "no globals"),))
    prompt = compress_prompt(SHIPPED, digest, 500)
    assert read_digest(sections(prompt)["## What is known"]) == digest
    assert "500 tokens" in prompt


def test_of_too_long_a_digest_the_first_entries_are_read() -> None:
    many = [{"direction": f"d{number}", "outcome": "neutral"} for number in range(30)]
    lessons = [{"kind": "success", "text": f"l{number}"} for number in range(30)]
    digest = read_digest(json.dumps({"directions": many, "lessons": lessons}))
    assert digest.directions[-1] == (Direction(f"d{DIRECTIONS_KEPT - 1}", "neutral"), 1)
    assert len(digest.lessons) == LESSONS_KEPT


@pytest.mark.parametrize(
    "reply",
    [
        '{"directions": [], "lessons": []}',
        '{"directions": []}',
        '{"directions": [{"direction": "a", "outcome": "good"}], "lessons": []}',
        "nothing",
    ],
)
def test_what_is_no_digest_is_refused(reply: str) -> None:
    with pytest.raises(UnparsableReplyError):
        read_digest(reply)


@pytest.mark.parametrize(("written", "count"), [(3, 3), (2.9, 2), (0, 1), (-4, 1), ("many", 1), (None, 1), (1e300, 1)])
def test_counts_are_read_as_models_write_them(written: object, count: int) -> None:
    reply = json.dumps({"directions": [{"direction": "a", "outcome": "failed", "count": written}], "lessons": []})
    assert read_digest(reply).directions == ((Direction("a", "failed"), count),)


def test_queries_see_the_program_and_what_is_known() -> None:
    prompt = queries_prompt(SHIPPED, "Be fast.", PARENT, "What worked:\n- loops", 3)
    assert sections(prompt)["## What is known"] == "```\nWhat worked:\n- loops\n```\n"
    assert "## What is known" not in queries_prompt(SHIPPED, "Be fast.", PARENT, "", 3)
    assert "3 search queries" in prompt
    assert read_queries('["a", "b", "a", "c", "d"]', 3) == ("a", "b", "c")


def test_queries_for_a_program_that_is_yet_to_be_written_say_nothing_of_what_became_of_it() -> None:
    prompt = queries_prompt(SHIPPED, "Be fast.", ShownProgram({"plan": "Sort first."}, None), "", 3)
    parts = sections(prompt)
    assert "Sort first." in parts["## The program"]
    assert "## What became of it" not in parts
    failed = sections(queries_prompt(SHIPPED, "Be fast.", CHILD, "", 3))
    assert "it failed" in failed["## What became of it"]


def test_distillation_sees_the_best_program_and_the_steps() -> None:
    step = Step(0.25, Insight(LOOPS, "it is hot\nprefer: loops"))
    prompt = distill_prompt(SHIPPED, "Be fast.", PARENT, [step], [])
    parts = sections(prompt)
    assert "## Steps that harmed most" not in parts
    assert "Change: 0.25\nDirection: loops unrolled (success)" in parts["## Steps that helped most"]
    assert hinted(parts["## Steps that helped most"], "prefer") == {"loops"}


def test_advice_is_read_up_to_five_and_may_be_none() -> None:
    many = [{"title": f"t{number}\nx", "text": "do\nprefer: loops"} for number in range(9)]
    found = read_advice(json.dumps(many))
    assert found[0] == Advice("t0 x", "do\nprefer: loops")
    assert len(found) == 5
    assert read_advice("[]") == ()
    with pytest.raises(UnparsableReplyError, match="'title' is missing"):
        read_advice('[{"text": "a"}]')


def test_a_memory_is_shown_in_groups_and_lines_stay_lines() -> None:
    text = shown_memory(
        [(LOOPS, 3), (Direction("fewer calls", "failed"), 1)],
        [Lesson("success", "hot loop\nprefer: loops"), Lesson("failed", "calls matter\navoid: calls")],
    )
    assert (
        text
        == """Directions that were tried:
- loops unrolled (success, 3 times)
- fewer calls (failed, once)

What worked:
- hot loop
  prefer: loops

What did not work:
- calls matter
  avoid: calls"""
    )
    assert hinted(text, "prefer") == {"loops"}
    assert hinted(text, "avoid") == {"calls"}
    assert shown_memory([], []) == ""
