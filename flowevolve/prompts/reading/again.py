"""Asks again after a reply that could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.core.model import Message
from flowevolve.core.reply_reading import UnparsableReplyError

AGAIN = "Your reply could not be used: "
_HOW = "Reply once more, complete and in the form that was asked for."
_EXAMPLE_CHARACTERS = 400


def asked_again(prompt: str, reply: str, error: UnparsableReplyError) -> Sequence[Message]:
    """The chat that asks again: the prompt, the reply, and what was wrong with it."""
    return [
        Message("user", prompt),
        Message("assistant", reply.strip() or "(no answer)"),
        Message("user", f"{AGAIN}{error}.\n\n{_HOW}"),
    ]


def prompt_of(messages: Sequence[Message]) -> str:
    """The prompt that a chat wants a reply to: its last message or, if that asks again, the prompt before it."""
    if len(messages) > 2 and messages[-1].role == "user" and messages[-1].content.startswith(AGAIN):
        return messages[-3].content
    return messages[-1].content


def example_of(reply: str) -> str:
    """A reply, shortened to its beginning and its end if it is too long for a log."""
    text = reply.strip()
    half = _EXAMPLE_CHARACTERS // 2
    return text if len(text) <= _EXAMPLE_CHARACTERS else f"{text[:half]} […] {text[-half:]}"
