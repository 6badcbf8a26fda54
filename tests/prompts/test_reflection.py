"""Prompts and parsers agree, whatever texts are inside, and bad replies are refused."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.fences import fence, labelled_blocks
from flowevolve.prompts.reading.instructions import is_whole, read_instruction
from flowevolve.prompts.reflection import (
    ReflectionExample,
    judge_prompt,
    merge_prompt,
    parse_verdict,
    reflection_prompt,
)
from flowevolve.prompts.shipped import SHIPPED

texts = st.text(
    alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
)


@given(texts.filter(lambda text: text.strip()))
def test_a_fenced_text_comes_back(text: str) -> None:
    assert read_instruction(f"Here it is:\n{fence(text)}") == text.strip()


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), texts, min_size=1, max_size=3))
def test_labelled_blocks_come_back(blocks: dict[str, str]) -> None:
    joined = "\n".join(fence(text, name) for name, text in blocks.items())
    assert dict(labelled_blocks(joined)) == blocks


def test_an_unclosed_fence_is_tolerated_and_inner_fences_stay() -> None:
    assert read_instruction("```\nbe brief") == "be brief"
    assert read_instruction("```text\nuse\n```\ncode\n```\nend\n```\nbye") == "use\n```\ncode\n```\nend"


@pytest.mark.parametrize("reply", ["", "no fence", "```\n\n```", "`inline`"])
def test_replies_without_an_instruction_are_refused(reply: str) -> None:
    with pytest.raises(UnparsableReplyError):
        read_instruction(reply)


def test_verdicts_are_read_strictly() -> None:
    patched = parse_verdict("**Verdict:** Orthogonal\nReason: adds x\n```prompt\nnew\n```", ["prompt"])
    assert (patched.verdict, patched.reason, dict(patched.patch)) == ("orthogonal", "adds x", {"prompt": "new"})
    dropped = parse_verdict("Verdict: subsumed\nReason: said already\n```prompt\nnew\n```", ["prompt"])
    assert dropped.patch == {}


@pytest.mark.parametrize(
    "reply",
    [
        *("", "I think it is fine", "Verdict: maybe", "Verdict: orthogonal", "Verdict: orthogonal\n```other\nx\n```"),
        *("Verdict: not subsumed\n```prompt\nnew\n```", "Verdict: not orthogonal\n```prompt\nnew\n```"),
    ],
)
def test_unclear_verdicts_are_refused(reply: str) -> None:
    with pytest.raises(UnparsableReplyError):
        parse_verdict(reply, ["prompt"])


def test_prompts_hold_what_they_are_about() -> None:
    asked = reflection_prompt(SHIPPED, "tone", "be kind", [ReflectionExample({"request": "hi"}, "hello", "too short")])
    assert all(part in asked for part in ("tone", "be kind", "hi", "hello", "too short"))
    judged = judge_prompt(SHIPPED, {"a": "old"}, {"a": "edited"}, [{"a": "accepted"}], {"a": "head"})
    assert all(part in judged for part in ("old", "edited", "accepted", "head"))
    merged = merge_prompt(SHIPPED, "tone", "be kind", ["be brief", "be ``` careful"])
    assert all(part in merged for part in ("tone", "be kind", "be brief", "be ``` careful"))


@pytest.mark.parametrize(
    "cut",
    [
        "```\nYou solve sums. Never gue",
        "You solve sums. You must always check each ste",
        "Here is the new instruction:\n```\nYou solve sums.\nAnswer in this form:\n```\nReason: ...\nAnswer: ..",
        'You solve sums. Answer in this format:\n```json\n{"answer": 4}\n```\nYou must always check each ste',
        "The output of example 1 was\n```\n5 apples\n```\nbut the unit must be left out, so the instruction must s",
        "<instruction>\nYou solve sums. Never gue",
        "[[ ## reasoning ## ]]\nIt guesses.\n[[ ## new_instruction ## ]]\nYou solve sums. Never gue",
        '{"new_instruction": "You solve sums. Never gue',
    ],
)
def test_half_of_a_text_is_not_whole(cut: str) -> None:
    assert not is_whole(cut)


@pytest.mark.parametrize(
    "cut",
    [
        "The new instruction:\n```\nYou solve sums.\n```\nIt is bett",
        "<instruction>\nYou solve sums.\n</instruction>\n\nThis should",
        "[[ ## new_instruction ## ]]\nYou solve sums.\n\n[[ ## completed ## ]]\n\nI th",
        '{"new_instruction": "You solve sums."}\n\nThis',
    ],
)
def test_a_text_that_ends_before_its_reply_was_cut_is_whole(cut: str) -> None:
    assert is_whole(cut)
    assert read_instruction(cut) == "You solve sums."
