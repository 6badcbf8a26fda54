"""What holds of the readers whatever a reply is: they read it or refuse it, soon, and don't mind thinking in front."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.json_types import JSON
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.prompts.reading.kinds import KINDS, Kind, Recorded, read_recorded

PIECES = st.sampled_from(
    [
        *("```", "~~~", "```python", "```json", "````", "\n", "\n\n", " ", "    ", "\t"),
        *("<think>", "</think>", "<answer>", "</answer>", "[[ ## answer ## ]]", "\\boxed{", "}", "{", "[", "]", '"'),
        *("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "SEARCH:", "REPLACE:", "FILE: program.py"),
        *("# EVOLVE-BLOCK-START", "# EVOLVE-BLOCK-END", "# ...", "a = 1", "def f():", "    return 1", "import os"),
        *(
            "Verdict: yes",
            "Score: 7/10",
            "The old one:",
            "The new one:",
            "Draft:",
            "- item",
            "1. item",
            "Final answer:",
        ),
        *('{"a": 1,', "'b': None}", "NaN", "//", "/*", ",", "'", "\\", "\ud800", "Be brief.", "I'm sorry"),
    ]
)
REPLIES = st.lists(PIECES | st.text(max_size=8), max_size=30).map("".join) | st.lists(
    PIECES | st.text(max_size=8), max_size=30
).map("\n".join)
PARENTS = st.sampled_from(
    [
        None,
        "a = 1\n",
        "a = 1\n# EVOLVE-BLOCK-START\ndef f():\n    return 1\n# EVOLVE-BLOCK-END\nprint(f())\n",
        "# EVOLVE-BLOCK-START\na = 1\n# EVOLVE-BLOCK-END\nimport os\n# EVOLVE-BLOCK-START\nb = 1\n",
        "",
    ]
)


def read(kind: Kind, recorded: Recorded) -> tuple[Reason | None, JSON]:
    try:
        return None, read_recorded(kind, recorded)
    except UnparsableReplyError as error:
        return error.reason, str(error)


@given(st.sampled_from(KINDS), REPLIES, PARENTS, st.sampled_from([None, "python", "cpp", "text"]))
def test_any_reply_is_read_or_refused(kind: Kind, reply: str, parent: str | None, language: str | None) -> None:
    read(kind, Recorded(reply, parent, language))


@given(st.sampled_from(KINDS), REPLIES.filter(lambda text: "think" not in text), PARENTS)
def test_thinking_in_front_changes_nothing(kind: Kind, reply: str, parent: str | None) -> None:
    thought = f"<think>\nA draft:\n```\nx = 1\n```\nVerdict: no\n</think>\n{reply}"
    expected, found = read(kind, Recorded(reply, parent)), read(kind, Recorded(thought, parent))
    if expected[0] is Reason.EMPTY and not reply.strip():
        assert found[0] is Reason.ONLY_THINKING
    else:
        assert found == expected


@given(REPLIES, PARENTS)
def test_what_is_outside_of_marks_stays_as_it_is(reply: str, parent: str | None) -> None:
    refused, child = read("program", Recorded(reply, parent))
    if parent is not None and "EVOLVE" in parent and refused is None:
        assert isinstance(child, str)
        before, _, _ = parent.partition("# EVOLVE-BLOCK-START")
        assert child.startswith(f"{before}# EVOLVE-BLOCK-START\n")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "[",
            "{",
            '{"a":',
            '["',
            '{"a": "',
            "(",
            "<think>",
            "</think>",
            "<think>\n",
            "<answer>",
            "</answer>",
            "<analysis>\n",
            "<|end|>",
            "```\n",
        ),
        *(
            "```python\n",
            "```x```\n",
            "~~~\n```\n",
            "`",
            "\\boxed{",
            "[[ ## a ## ]]\n",
            "<<<<<<< SEARCH\n",
            "=======\n",
        ),
        *(
            "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
            "SEARCH:\n",
            "SEARCH:\nREPLACE:\n",
            "**SEARCH**\n",
            "FILE: a\n",
            "a\n",
            " ",
        ),
        *(
            "Verdict: yes\n",
            "Score: 1 ",
            "1 ",
            "- a\n",
            "# EVOLVE-BLOCK-START\n",
            "/*",
            "#",
            "'",
            '"',
            "**",
            "Answer: ",
        ),
        *("The new instruction:\n", "Assistant 1: 3\n", "rate it ", "[[", "\n", "\t", "x = 1\n", "def f():\n"),
    ],
)
def test_it_takes_no_longer_than_the_reply_is_long(kind: Kind, piece: str) -> None:
    reply = piece * (60_000 // len(piece))
    began = time.process_time()
    read(kind, Recorded(reply, "a\n" * 1_000))
    assert time.process_time() - began < 6
