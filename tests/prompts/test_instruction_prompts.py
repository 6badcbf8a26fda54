"""What stands in every prompt about instructions, playbooks and harnesses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from flowevolve.prompts import harnesses, playbook, reflection
from flowevolve.prompts.harnesses import harness_prompt
from flowevolve.prompts.playbook import CITE_RULE, LAST_TRY_RULE, PLAYBOOK_RULE, parse_curator_requests, parse_lesson
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reading.json_replies import tool_calls
from flowevolve.prompts.reading.notes import lessons_in, relations_in
from flowevolve.prompts.reflection import parse_verdict, reflection_prompt
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.rules.text import read_statement
from tests.prompts.samples_instructions import BRIEF, EXAMPLES, INSTRUCTION_SAMPLES, SETS

HEADINGS: Mapping[str, Sequence[str]] = {
    "reflect": [
        reflection.REFLECT_TITLE,
        reflection.CURRENT_HEADING,
        reflection.OTHERS_HEADING,
        reflection.EXAMPLES_HEADING,
    ],
    "judge": [
        reflection.JUDGE_TITLE,
        reflection.PARENT_HEADING,
        reflection.STALE_HEADING,
        reflection.UPDATES_HEADING,
        reflection.HEAD_HEADING,
    ],
    "merge": [reflection.MERGE_TITLE, reflection.ORIGIN_HEADING, reflection.VERSIONS_HEADING],
    "merge_edits": [reflection.MERGE_EDITS_TITLE, reflection.HEAD_HEADING, reflection.EDITS_HEADING],
    "lesson": [playbook.LESSON_TITLE, playbook.FEEDBACK_HEADING, playbook.USED_HEADING],
    "gather": [playbook.GATHER_TITLE, playbook.LESSONS_HEADING],
    "curate": [
        playbook.CURATE_TITLE,
        playbook.PLAYBOOK_HEADING,
        playbook.LESSONS_HEADING,
        playbook.DIAGNOSES_HEADING,
    ],
    "merge_notes": [playbook.MERGE_TITLE, playbook.ADVICE_HEADING],
    "compare": [playbook.COMPARE_TITLE, playbook.NEW_HEADING, playbook.NOTED_HEADING],
    "harness": [harnesses.HARNESS_TITLE],
}
MOST_WORDS = 500


@pytest.mark.parametrize("name", INSTRUCTION_SAMPLES)
def test_no_field_is_left_and_the_template_is_named(name: str) -> None:
    prompt = INSTRUCTION_SAMPLES[name](SHIPPED)
    assert not any(f"{{{field}}}" in prompt for field in SHIPPED[name].fields)
    assert prompt.template == SHIPPED[name].version
    assert len(SHIPPED[name].text.split()) < MOST_WORDS


@pytest.mark.parametrize("name", HEADINGS)
def test_every_prompt_has_its_headings_in_order(name: str) -> None:
    lines = INSTRUCTION_SAMPLES[name](SHIPPED).split("\n")
    assert lines[0] == HEADINGS[name][0]
    places = [lines.index(heading) for heading in [*HEADINGS[name], reflection.WRITE_HEADING]]
    assert places == sorted(places)
    assert all(heading in SHIPPED[name].text.split("\n") for heading in HEADINGS[name])


@pytest.mark.parametrize("name", HEADINGS)
def test_every_prompt_says_what_is_data_and_what_counts(name: str) -> None:
    prompt = INSTRUCTION_SAMPLES[name](SHIPPED)
    assert re.search(r"\bis data\b", prompt)
    assert re.search(r"\bscore[sd]?\b", prompt)


def test_what_is_appended_to_a_task_s_prompt_is_what_simulated_models_know() -> None:
    assert SHIPPED["cite"].text == CITE_RULE
    for name, heading, rule in (
        ("playbook", playbook.PLAYBOOK_HEADING, PLAYBOOK_RULE),
        ("last_try", playbook.LAST_TRY_HEADING, LAST_TRY_RULE),
    ):
        assert SHIPPED[name].text.split("\n")[:2] == [heading, rule]
    assert not any(read_statement(rule) for rule in (CITE_RULE, PLAYBOOK_RULE, LAST_TRY_RULE))


def example_of(name: str) -> str:
    """The example of a reply at the end of a prompt."""
    prompt = INSTRUCTION_SAMPLES[name](SHIPPED)
    lines = prompt.partition(reflection.WRITE_HEADING)[2].split("\n")
    start = next(place for place, line in enumerate(lines) if line.startswith("    "))
    return "\n".join(line.removeprefix("    ") for line in lines[start:])


def test_the_examples_of_replies_are_read_as_they_are_meant() -> None:
    for name in ("reflect", "merge", "merge_edits", "merge_notes"):
        assert len(read_instruction(example_of(name)).split("\n")) == (1 if name == "merge_notes" else 3)
    verdict = parse_verdict(example_of("judge"), ["answer", "search"])
    assert (verdict.verdict, list(verdict.patch)) == ("orthogonal", ["answer"])
    learnt = parse_lesson(example_of("lesson"), {"str-00000"})
    assert (len(learnt.lessons), learnt.tags) == (2, {"str-00000": "helpful"})
    assert learnt.diagnosis.startswith("Error: The margin is given as 0.25")
    assert all(part in learnt.diagnosis for part in ("Cause: ", "Correct approach: "))
    assert len(lessons_in(example_of("gather"))) == 2
    requests, unread = parse_curator_requests(example_of("curate"))
    assert ([each.verb for each in requests], unread) == (["ADD", "UPDATE"], 0)
    assert relations_in(example_of("compare"), 2) == ["same", "new"]


def test_the_tools_that_are_shown_are_read() -> None:
    tools = [str(call["tool"]) for call in tool_calls(INSTRUCTION_SAMPLES["harness"](SHIPPED))]
    assert tools == ["list", "read", "search", "try"]


def test_examples_have_scores_and_what_was_scored() -> None:
    prompt = INSTRUCTION_SAMPLES["reflect"](SHIPPED)
    assert "Score: 1\n" in prompt
    assert "Final answer, which was scored:\n```\nlong\n```\nScore: 0\nFeedback:" in prompt
    assert "```search\nWrite a query for a search engine.\n```" in prompt


def test_one_component_has_no_others() -> None:
    assert reflection.OTHERS_HEADING not in reflection_prompt(SHIPPED, "answer", "Answer.", EXAMPLES)


def test_other_components_are_shortened() -> None:
    prompt = reflection_prompt(SHIPPED, "answer", "Answer.", EXAMPLES, {"search": "x" * 9_000})
    assert "characters left out" in prompt
    assert len(prompt) < 7_000


def test_no_trial_is_spoken_of_where_there_are_none() -> None:
    without = harness_prompt(SHIPPED, SETS, replace(BRIEF, tries=0))
    assert "## Trying a harness" in INSTRUCTION_SAMPLES["harness"](SHIPPED)
    assert "## Trying a harness" not in without
    assert [call["tool"] for call in tool_calls(without)] == ["list", "read", "search"]
