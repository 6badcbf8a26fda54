"""The token counts of a call: those its server reports, and estimates of those it leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flowevolve._util.json_types import JSON
from flowevolve.core.model import CHARS_PER_TOKEN, ChatReply, ChatRequest, EmbedReply, EmbedRequest, Usage

MOST_TOKENS = 100_000_000
"""More tokens than any call uses; a higher count is ignored. Even the sum over all calls of a run then stays far below
what SQLite can store."""


def usage_in(usage: JSON) -> Usage:
    """The token counts in the ``usage`` field of an answer; 0 for each that is missing or invalid.

    If only the total and one of prompt and completion tokens are reported, the other is the difference. If the total is
    more than the sum of both, the rest are thinking tokens, which Google and xAI count in the total alone; they are
    added to the completion tokens, as which they are billed.
    """
    if not isinstance(usage, dict):
        return Usage()
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    total = _count(usage.get("total_tokens"))
    if not prompt and completion:
        prompt = max(0, total - completion)
    elif prompt:
        completion = max(completion, total - prompt)
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return Usage(prompt, completion, min(cached, prompt))


def with_estimated_usage(request: ChatRequest, reply: ChatReply) -> ChatReply:
    """The reply with the token counts its server left out, estimated by `CHARS_PER_TOKEN`."""
    usage = reply.usage
    written = [reply.thinking, reply.text]
    if reply.cached or (usage.prompt_tokens and (usage.completion_tokens or not any(written))):
        return reply
    prompt = usage.prompt_tokens or _estimate(message.content for message in request.messages)
    usage = replace(usage, prompt_tokens=prompt, completion_tokens=usage.completion_tokens or _estimate(written))
    return replace(reply, usage=usage, estimated=True)


def embedding_with_estimated_usage(request: EmbedRequest, reply: EmbedReply) -> EmbedReply:
    """As `with_estimated_usage`, for embeddings."""
    if reply.usage.prompt_tokens:
        return reply
    return replace(reply, usage=Usage(_estimate(request.texts)), estimated=True)


def _estimate(texts: Iterable[str]) -> int:
    return -(-sum(map(len, texts)) // CHARS_PER_TOKEN)


def _count(value: JSON) -> int:
    """A token count, which some servers write as ``12.0``; 0 for any other value, or one above `MOST_TOKENS`."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else 0  # by its type, as True is an int, too
