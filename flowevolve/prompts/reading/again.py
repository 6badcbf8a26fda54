"""Asking once more for a reply that could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.core.model import Message, UnparsableReplyError

AGAIN = "Your reply could not be used: "
_HOW = "Reply once more, complete and in the form that was asked for."
_EXAMPLE_CHARACTERS = 400


def asked_again(prompt: str, reply: str, error: UnparsableReplyError) -> Sequence[Message]:
    """The chat that asks once more: the prompt, the reply, and what was wrong with it."""
    return [
        Message("user", prompt),
        Message("assistant", reply.strip() or "(no answer)"),
        Message("user", f"{AGAIN}{error}.\n\n{_HOW}"),
    ]


def prompt_of(messages: Sequence[Message]) -> str:
    """The prompt that the last message of a chat stands for: the one before, if it asks once more."""
    if len(messages) > 2 and messages[-1].role == "user" and messages[-1].content.startswith(AGAIN):
        return messages[-3].content
    return messages[-1].content


def example_of(reply: str) -> str:
    """A reply in few enough characters for a log: its beginning and its end."""
    text = reply.strip()
    half = _EXAMPLE_CHARACTERS // 2
    return text if len(text) <= _EXAMPLE_CHARACTERS else f"{text[:half]} […] {text[-half:]}"
