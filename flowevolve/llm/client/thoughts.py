"""Takes the model's thinking out of the text of a reply before anybody reads it."""

from __future__ import annotations

from dataclasses import replace

from flowevolve._util.clock import in_thread
from flowevolve._util.thinking import split_thinking
from flowevolve.core.model import ChatReply, CutWhileThinkingError

_LONG = 2**16
"""The length of a text, in characters, from which it is read in a thread, so that the event loop is not held up."""


async def without_thinking(reply: ChatReply) -> ChatReply:
    """The reply with the answer alone as its text. Thinking in the text is added to what the server sent as such."""
    text = reply.text
    split = split_thinking(text) if len(text) < _LONG else await in_thread(split_thinking, text)
    if split.answer == reply.text:
        return reply
    thoughts = "\n\n".join(part for part in (reply.thinking, split.thoughts) if part)
    return replace(reply, text=split.answer, thinking=thoughts)


def cut_while_thinking(reply: ChatReply, max_tokens: int | None) -> CutWhileThinkingError | None:
    """The error for a reply whose tokens ran out before its answer began; None for any other reply."""
    if not reply.was_cut or reply.text.strip():
        return None
    limit = "the server's limit" if max_tokens is None else f"max_tokens = {max_tokens}"
    return CutWhileThinkingError(
        f"cut off while thinking, after {reply.usage.completion_tokens} tokens ({limit}): raise llm.thinking_tokens, "
        "or have the model think less (reasoning_effort, enable_thinking)",
        usage=reply.usage,
        model=reply.model,
    )
