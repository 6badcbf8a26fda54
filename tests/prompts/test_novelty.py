"""What is read of replies to the question whether a program is new."""

from __future__ import annotations

import pytest

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.novelty import read_novelty


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("**Verdict:** new", "new"),
        ("Verdict: Same.\nReason: it is not new.", "same"),
        ("Verdict: new, not the same as program 2", "new"),
        ("Verdict: new, although it isn't faster", "new"),
        ("Verdict: new - no other program does it", "new"),
        ("Verdict: new and not the same", "new"),
        ("The program is new.", "new"),
        ("It sorts as program 1 does.\n\n## Verdict\nnew", "new"),
        ("**Verdict:**\n\n**same**\n\n**Reason:** It is not new.", "same"),
    ],
)
def test_a_verdict_is_the_word_that_it_says(reply: str, verdict: str) -> None:
    assert read_novelty(reply) == verdict


@pytest.mark.parametrize(
    "reply",
    [
        "Verdict: not new",
        "Verdict: **not** the same",
        "Verdict: isn't new",
        "Verdict: isn’t new",
        "Verdict: no new method",
        "Verdict: nothing new here",
        "The program is not new.",
        "Verdict: not new but the same",
        "Verdict: new | same",
        "Verdict: not new\nVerdict: same",
    ],
)
def test_what_is_denied_is_no_verdict(reply: str) -> None:
    with pytest.raises(UnparsableReplyError):
        read_novelty(reply)
