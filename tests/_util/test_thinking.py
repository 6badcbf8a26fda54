"""What a model thought and what it answered, in the forms in which models write it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.thinking import Thinking, split_thinking

FENCE = "```"
SPLIT = {
    "a block, then the answer": ("<think>\nTwo and two.\n</think>\n\n4", "Two and two.", "4"),
    "on one line": ("<think>2 + 2</think>4", "2 + 2", "4"),
    "any case, spaces in the tag": (" <Thinking >a</THINKING>\nb", "a", "b"),
    "reasoning": ("<reasoning>a</reasoning> b", "a", "b"),
    "thought": ("<thought>a</thought> b", "a", "b"),
    "Mistral": ("[THINK]a[/THINK]b", "a", "b"),
    "Seed-OSS": ("<seed:think>a</seed:think>b", "a", "b"),
    "an empty block, as of a model that was told not to think": ("<think>\n\n</think>\n\n4", "", "4"),
    "no opening tag": ("Two and two.\n</think>\n4", "Two and two.", "4"),
    "no opening tag, on one line": ("2 + 2 is 4 </think> 4", "2 + 2 is 4", "4"),
    "no opening tag, twice": ("a\n</think>\nb\n</think>\nc", "a\n\nb", "c"),
    "cut while thinking": ("<think>\nLet me", "Let me", ""),
    "cut at the closing tag": ("Let me\n</think>", "Let me", ""),
    "two blocks": ("<think>a</think>\n<think>b</think>\nc", "a\n\nb", "c"),
    "a block after the answer began": ("4\n<think>Sure?\n</think>\nYes, 4.", "Sure?", "4\n\nYes, 4."),
    "a second one that was cut": ("<think>a</think>\n4\n<think>\nSure", "a\n\nSure", "4"),
    "a greeting before": ("Sure! <think>hmm</think> 4", "hmm", "Sure!  4"),
    "a greeting, and the block on lines of its own": ("Well <think>\na\nb\n</think>\n4", "a\nb", "Well \n4"),
    "nested": ("<think>a<think>b</think>c</think>d", "a<think>b\n\nc", "d"),
    "nested, of another name": ("<thinking>a <thought>b</thought> c</thinking> d", "a <thought>b</thought> c", "d"),
    "nested, and cut": ("<think>a <reasoning>draft</reasoning> so", "a <reasoning>draft</reasoning> so", ""),
    "opened twice": ("<think>\n<think>\na\n</think>\nb", "<think>\na", "b"),
    "closed by another name": ("<think>a</thinking>b", "a", "b"),
    "thoughts about the tags": (
        "<think>`</think>` ends it, '</think>' too</think>4",
        "`</think>` ends it, '</think>' too",
        "4",
    ),
    "a draft in a block": (
        f"<think>\n{FENCE}python\nx = 1\n{FENCE}\n</think>\n{FENCE}python\nx = 2\n{FENCE}",
        f"{FENCE}python\nx = 1\n{FENCE}",
        f"{FENCE}python\nx = 2\n{FENCE}",
    ),
    "closed on the line of a fence, after other thoughts": (
        f"<think>\nA {FENCE}python\nx = 1\n{FENCE} </think>\nfine",
        f"A {FENCE}python\nx = 1\n{FENCE}",
        "fine",
    ),
    "closed on the line of a fence": (
        f"<think>\n{FENCE}python\nx = 1\n{FENCE} </think>\nfine",
        f"{FENCE}python\nx = 1\n{FENCE}",
        "fine",
    ),
    "the same, without the opening tag": (
        f"{FENCE}python\nx = 1\n{FENCE} </think>\nfine",
        f"{FENCE}python\nx = 1\n{FENCE}",
        "fine",
    ),
    "a draft whose fence never ends": (
        f"<think>\n{FENCE}python\nx = 1\n</think>\n{FENCE}python\nx = 2\n{FENCE}",
        f"{FENCE}python\nx = 1",
        f"{FENCE}python\nx = 2\n{FENCE}",
    ),
    "the same without the opening tag": (
        f"{FENCE}python\nx = 1\n</think>\n{FENCE}python\nx = 2\n{FENCE}",
        f"{FENCE}python\nx = 1",
        f"{FENCE}python\nx = 2\n{FENCE}",
    ),
    "the same, and an answer without a fence": (f"{FENCE}\nx = 1\n</think>\n4", f"{FENCE}\nx = 1", "4"),
    "a draft without the opening tag": (
        f"{FENCE}python\nx = 1\n{FENCE}\nBetter:\n</think>\n{FENCE}python\nx = 2\n{FENCE}",
        f"{FENCE}python\nx = 1\n{FENCE}\nBetter:",
        f"{FENCE}python\nx = 2\n{FENCE}",
    ),
    "a draft of an edit": (
        "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n</think>\n<<<<<<< SEARCH\na\n=======\nc\n>>>>>>> REPLACE",
        "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE",
        "<<<<<<< SEARCH\na\n=======\nc\n>>>>>>> REPLACE",
    ),
    "a draft of an edit that broke off": (
        "<<<<<<< SEARCH\na\n=======\nb\n</think>\n<<<<<<< SEARCH\na\n=======\nc\n>>>>>>> REPLACE",
        "<<<<<<< SEARCH\na\n=======\nb",
        "<<<<<<< SEARCH\na\n=======\nc\n>>>>>>> REPLACE",
    ),
    "gpt-oss": (
        "<|channel|>analysis<|message|>Two and two.<|end|><|start|>assistant<|channel|>final<|message|>4<|return|>",
        "Two and two.",
        "4",
    ),
    "gpt-oss, cut": ("<|channel|>analysis<|message|>Two and", "Two and", ""),
    "gpt-oss, with a commentary": (
        (
            "<|start|>assistant<|channel|>analysis<|message|>a<|end|>"
            "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>b<|call|>"
            "<|start|>assistant<|channel|>final<|message|>c"
        ),
        "a\n\nb",
        "c",
    ),
    "gpt-oss, without the first marker": ("hmm<|channel|>final<|message|>4", "hmm", "4"),
    "gpt-oss, without markers": ("analysisWe need 4.assistantfinal4", "We need 4.", "4"),
}
UNCHANGED = {
    "no tags": "  4 \n",
    "empty": "",
    "in a fenced block": f"Here:\n{FENCE}python\nif '<think>' in x:\n    y = x.split('</think>')\n{FENCE}\n",
    "a pair in a fenced block": f"{FENCE}\n<think>\nreason\n</think>\n{FENCE}",
    "a pair in a block on one line": f"{FENCE}<think>reason</think>{FENCE}\nThen answer.",
    "in a block of tildes": "Use\n~~~\n<think>\nreason\n</think>\n~~~",
    "in inline code": "Write `<think>your thoughts</think>` first.",
    "quoted": "Write '<think>' before and \"</think>\" after.",
    "mentioned": "Put your thoughts between <think> and </think>, then answer.",
    "mentioned in a sentence": "Use <think> for thoughts, close with </think> and answer.",
    "the opening one is mentioned": "Begin with <think> always.",
    "an example with dots": "Answer so:\n<think>...</think>\n<answer>4</answer>",
    "an example with a placeholder": "Answer so:\n<think>\n[your thoughts]\n</think>\n<answer>4</answer>",
    "in an edit": "<<<<<<< SEARCH\n<think>\nplan\n</think>\n=======\n<think>\nreason\n</think>\n>>>>>>> REPLACE",
    "a closing tag in an edit": "<<<<<<< SEARCH\n</think>\n=======\n</think> now\n>>>>>>> REPLACE\n<<<<<<< SEARCH\na",
    "in edits in a block": f"{FENCE}\n<<<<<<< SEARCH\n</think>\n=======\n>>>>>>> REPLACE\n<<<<<<< SEARCH\na\n{FENCE}",
    "a closing tag in a program": f"{FENCE}python\nT = '''\n</think>\n'''\n{FENCE}",
    "a lower-case bracket": "[think] about it",
    "another word": "<thinker>a</thinker>",
    "gpt-oss's markers in a program": f"Here:\n{FENCE}\ns = '<|channel|>final<|message|>'\n{FENCE}",
    "gpt-oss's markers quoted": "Look for '<|channel|>final<|message|>' in it",
    "analysis": "analysis of it: assistantfinal",
}


@pytest.mark.parametrize("form", SPLIT)
def test_thinking_is_told_apart_from_the_answer(form: str) -> None:
    text, thoughts, answer = SPLIT[form]

    assert split_thinking(text) == Thinking(thoughts, answer)


@pytest.mark.parametrize("form", UNCHANGED)
def test_a_reply_without_thinking_is_the_answer_as_it_stands(form: str) -> None:
    assert split_thinking(UNCHANGED[form]) == Thinking("", UNCHANGED[form])


_PIECES = st.sampled_from(
    [
        "<think>",
        "</think>",
        "<reasoning>",
        "</reasoning>",
        "[THINK]",
        "\n",
        " ",
        FENCE,
        f"\n{FENCE}\n",
        "`",
        "'",
        "word",
        "<|channel|>final<|message|>",
    ]
)


@given(st.lists(_PIECES))
def test_no_text_is_too_odd_and_an_answer_has_no_more_thinking(pieces: list[str]) -> None:
    text = "".join(pieces)

    split = split_thinking(text)

    assert split.answer == text or len(split.answer) < len(text)
    assert split.thoughts or split.answer == text or text.strip()


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "a <think> ",
        "<think>a</think>",
        " ",
        "`",
        "```\n",
        "<|channel|>",
        "<|channel|>a",
        "<think ",
        "\n<think>a</think>b",
    ],
)
def test_long_texts_are_split_in_linear_time(piece: str) -> None:
    """Quadratic time would take minutes here."""
    text = piece * (300_000 // len(piece))

    assert len(split_thinking(text).answer) <= len(text)
