"""Asking an agent: one LLM call, an event that counts its tokens for the agent, and the strict reading of the reply."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from flowevolve.core.context import StageContext
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, LLMError, Message, UnparsableReplyError, Usage
from flowevolve.core.record import Record

T = TypeVar("T")


class Answered(Record, kind="agent.answered"):
    """What an agent's answer took, in tokens."""

    agent: str
    role: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


async def ask(
    context: StageContext,
    role: str,
    prompt: str,
    read: Callable[[str], T],
    *,
    agent: str,
    candidate: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
) -> T:
    """What ``read`` makes of the reply to one call of this role. ``agent`` says in whose name, for the accounts.

    Raises:
        UnparsableReplyError: if it can't be read (the event ``reply.unparsable`` says why).
        LLMError: if the call failed for good.
    """
    reply = await call(
        context, role, prompt, agent=agent, candidate=candidate, max_tokens=max_tokens, temperature=temperature
    )
    return understand(context, reply, read, agent=agent, role=role, candidate=candidate)


async def try_asking(
    context: StageContext,
    role: str,
    prompt: str,
    read: Callable[[str], T],
    *,
    agent: str,
    candidate: str | None = None,
    max_tokens: int | None = None,
) -> T | None:
    """As `ask`, for callers that can do without an answer: None where no reply came (the event ``reply.missing``) or it
    can't be read.
    """
    try:
        return await ask(context, role, prompt, read, agent=agent, candidate=candidate, max_tokens=max_tokens)
    except UnparsableReplyError:
        return None
    except LLMError as error:
        context.log("reply.missing", agent=agent, role=role, candidate=candidate, error=str(error))
        return None


async def call(
    context: StageContext,
    role: str,
    prompt: str,
    *,
    agent: str,
    candidate: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
) -> ChatReply:
    """The first half of `ask`: the call, and the event that says what it took.

    Raises:
        LLMError: if it failed for good.
    """
    messages = [Message("user", prompt)]
    reply = await context.chat(role, messages, candidate=candidate, max_tokens=max_tokens, temperature=temperature)
    paid = reply.paid
    answered = Answered(
        agent=agent,
        role=role,
        prompt_tokens=paid.prompt_tokens,
        completion_tokens=paid.completion_tokens,
        cached_tokens=paid.cached_tokens,
    )
    context.log(Answered.kind, **answered.to_json())
    return reply


def understand(
    context: StageContext,
    reply: ChatReply,
    read: Callable[[str], T],
    *,
    agent: str,
    role: str,
    candidate: str | None = None,
) -> T:
    """The second half of `ask`: what ``read`` makes of a reply.

    Raises:
        UnparsableReplyError: if it can't be read (the event ``reply.unparsable`` says why).
    """
    try:
        return read(reply.text)
    except UnparsableReplyError as error:
        context.log("reply.unparsable", agent=agent, role=role, candidate=candidate, error=str(error))
        raise


def tokens_by_agent(events: Iterable[Event]) -> dict[str, Usage]:
    """What each agent's answers took, from a run's events; calls that failed are not counted."""
    sums: dict[str, Usage] = {}
    for event in events:
        if event.kind == Answered.kind:
            told = Answered.from_json(event.data)
            usage = Usage(told.prompt_tokens, told.completion_tokens, told.cached_tokens)
            sums[told.agent] = sums.get(told.agent, Usage()) + usage
    return sums
