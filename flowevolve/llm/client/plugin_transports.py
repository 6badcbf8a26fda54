"""What a transport of a plug-in may get wrong, and how its calls fail then."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from flowevolve._util.errors import FlowevolveError, described
from flowevolve._util.tasks import stray_cancellation_is_an_error
from flowevolve.core.model import ChatReply, LLMError, ServerError, Usage

T = TypeVar("T")


async def within_protocol(call: Awaitable[object], kind: type[T]) -> T:
    """Await a call of a transport, which has to return a ``kind``.

    Raises:
        LLMError: as the transport. Anything else that it raises counts as a `ServerError`, as the fault is neither the
            task's nor the request's, and so does a return value of another type, or one that holds another.
    """
    try:
        async with stray_cancellation_is_an_error():
            reply = await call
    except (LLMError, FlowevolveError):
        raise
    except Exception as error:  # a plug-in, and what it uses, may raise anything
        raise ServerError(f"the backend's own code raised {described(error)}") from error
    if not isinstance(reply, kind):
        raise ServerError(f"the backend returned a {type(reply).__name__}, but has to return a {kind.__name__}")
    if isinstance(reply, ChatReply):
        _check_parts(reply)
    return reply


def _check_parts(reply: ChatReply) -> None:
    text: object = reply.text
    usage: object = reply.usage
    if not isinstance(text, str):
        raise ServerError(f"the backend returned a ChatReply whose text is {text!r:.80}; it has to be a text")
    if not (isinstance(usage, Usage) and all(isinstance(count, int) and count >= 0 for count in _counts(usage))):
        raise ServerError(f"the backend returned a ChatReply whose usage is {usage!r:.120}; give numbers of tokens")


def _counts(usage: Usage) -> tuple[object, ...]:
    return usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens
