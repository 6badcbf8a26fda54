"""Words that only say what is to stand in their place, and texts that have something of the kind in them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.abstracts import read_guidance, read_summary
from flowevolve.prompts.memory import read_advice, read_insight, read_queries
from flowevolve.prompts.plans import read_plans
from flowevolve.prompts.playbook import parse_curator_requests, parse_lesson, parse_lessons
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reading.placeholders import is_placeholder
from flowevolve.prompts.reflection import parse_verdict
from flowevolve.prompts.shipped import SHIPPED

PLACEHOLDERS = [
    "...",
    "…",
    '"..."',
    "<...>",
    "[…]",
    "<new instruction>",
    "<the whole new text>",
    "[Your improved instruction here]",
    "[Insert the new prompt here]",
    "<system_prompt>",
    "The new instruction goes here.",
    "Your revised prompt here",
    "<lesson>",
]


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_it_is_no_text(text: str) -> None:
    assert is_placeholder(text)
    with pytest.raises(UnparsableReplyError):
        read_instruction(f"Here is the new instruction:\n```\n{text}\n```")
    assert parse_lesson(f"Error: haste\nLesson: {text}", set()).lessons == ()


@pytest.mark.parametrize(
    "text",
    [
        "Answer <question> in one word.",
        "<question>",
        "{question}",
        "[Keep the text short]",
        "[Check the units.]",
        "Write the date as [day] [month] [year].",
        "Put the answer here: <answer>",
        "The new rules apply here only if the order is late.",
        "Follow the instruction.",
        "Wait... then answer.",
        "... and then round.",
        "*",
        "始终检查单位",
    ],
)
def test_texts_with_brackets_or_dots_are_texts(text: str) -> None:
    assert not is_placeholder(text)
    assert read_instruction(f"Here is the new instruction:\n```\n{text}\n```") == text
    assert parse_lesson(f"Lesson: {text}", set()).lessons == ((text,) if text != "*" else ())


@pytest.mark.parametrize(
    ("read", "reply"),
    [
        (read_summary, '{"inherited": [], "new": [], "abstract": "..."}'),
        (read_guidance, '{"guidance": "<guidance>"}'),
        (read_insight, '{"direction": "sums", "outcome": "failed", "lesson": "..."}'),
        (read_advice, '[{"title": "Sums", "text": "..."}]'),
        (lambda reply: read_queries(reply, 2), '["...", "…"]'),
        (lambda reply: read_plans(reply, 2), '["...", "<plan>"]'),
        (parse_curator_requests, '[{"op": "ADD", "section": "...", "text": "..."}]'),
        (lambda reply: parse_verdict(reply, ["a"]), "Verdict: orthogonal\n```a\n<the whole new text>\n```"),
    ],
)
def test_readers_refuse_a_reply_that_has_nothing_else(read: Callable[[str], object], reply: str) -> None:
    with pytest.raises(UnparsableReplyError):
        read(reply)


def test_what_is_beside_a_placeholder_is_read() -> None:
    assert read_plans('["...", "Sort first."]', 2) == ("Sort first.",)
    assert parse_lessons("Lesson: ...\nLesson: Add up.") == ("Add up.",)


def test_a_template_s_own_example_is_no_reply_to_it() -> None:
    lesson, gather, curate = (SHIPPED[name].text for name in ("lesson", "gather", "curate"))
    said = lesson.rpartition("\n\n")[2]
    assert parse_lesson(said, set()).lessons
    assert parse_lesson(said, set(), lesson).lessons == ()
    assert parse_lesson(f"{said}\nLesson: Add up.", set(), lesson).lessons == ("Add up.",)
    said = gather.rpartition("\n\n")[2]
    assert len(parse_lessons(said)) == 2
    with pytest.raises(UnparsableReplyError):
        parse_lessons(said, gather)
    said = curate.rpartition("\n\n")[2]
    assert len(parse_curator_requests(said)[0]) == 2
    with pytest.raises(UnparsableReplyError):
        parse_curator_requests(said, curate)
    added = '[{"op": "ADD", "text": "Add up."}, {"op": "DELETE", "id": "str-00001"}]'
    assert parse_curator_requests(added, curate) == parse_curator_requests(added)
