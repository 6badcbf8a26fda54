"""Asking an agent: a call, an event that counts its tokens for the agent, the reading of the reply, and further calls
if the reply can't be read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from flowevolve._util.errors import EngineError
from flowevolve.core.context import StageContext
from flowevolve.core.event_kinds import ReplyUnparsable
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, LLMError, Message, Usage
from flowevolve.core.record import Record
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.prompts.reading.again import asked_again, example_of

T = TypeVar("T")


class Answered(Record, kind="agent.answered"):
    """The tokens that an agent's answer took."""

    agent: str
    role: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


Whole = Callable[[str], bool]
"""Tells whether a reply that the token limit cut off still contains everything that is read from it."""
Send = Callable[[Sequence[Message]], Awaitable[ChatReply]]
"""Sends a chat and returns the reply."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and about what: fields of the events about a reply."""

    role: str
    agent: str
    candidate: str | None = None
    component: str | None = None


async def read_reply(
    context: StageContext,
    send: Send,
    prompt: str,
    read: Callable[[str], T],
    asker: Asker,
    *,
    whole: Whole | None = None,
) -> T:
    """Send a prompt, and return what ``read`` makes of the reply. If a reply can't be read, another is requested and
    the model is told the error, as often as the role's ``retries`` allow; an event ``reply.unparsable`` records each
    such error. What was read from a reply that the token limit cut off counts only if ``whole`` says so or is None.

    Raises:
        UnparsableReplyError: if the last reply can't be read either.
        LLMError: if a call failed for good.
    """
    messages: Sequence[Message] = [Message("user", prompt)]
    for left in reversed(range(context.retries(asker.role) + 1)):
        reply = await send(messages)
        try:
            return _read_whole(reply, read, whole)
        except UnparsableReplyError as error:
            log_unreadable(context, asker, error, reply.text, again=left > 0)
            if not left:
                raise
            # Quoting all of a reply that filled the context of the server would leave no room for another one.
            messages = asked_again(prompt, example_of(reply.text) if reply.was_cut else reply.text, error)
    raise EngineError("a role is asked at least once")


def log_unreadable(
    context: StageContext, asker: Asker, error: UnparsableReplyError, reply: str, *, again: bool = False
) -> None:
    """Log an event about a reply that can't be read. ``again`` says whether another one is requested."""
    context.log(
        ReplyUnparsable(
            context.stage,
            context.item_id,
            str(error),
            error.reason.value,
            asker.role,
            asker.agent,
            asker.candidate,
            asker.component,
            example_of(reply),
            again,
        )
    )


def _read_whole(reply: ChatReply, read: Callable[[str], T], whole: Whole | None) -> T:
    """What ``read`` makes of a reply, unless the reply was cut off before the end of what is read.

    Raises:
        UnparsableReplyError: if the reply can't be read, also because it was cut off.
    """
    if not reply.was_cut:
        return read(reply.text)
    try:
        found = read(reply.text)
    except UnparsableReplyError as error:
        if error.reason not in (Reason.MISSING, Reason.EMPTY):
            raise
    else:
        if whole is None or whole(reply.text):
            return found
    raise UnparsableReplyError(
        "it breaks off, as it reached the limit of tokens; say the same in fewer words", Reason.INCOMPLETE
    )


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
    whole: Whole | None = None,
) -> T:
    """Ask a role, and return what ``read`` makes of the reply, as `read_reply` does. ``agent`` is the name under which
    the tokens are counted.

    Raises:
        UnparsableReplyError: if the reply can't be read (the event ``reply.unparsable`` says why).
        LLMError: if a call failed for good.
    """

    async def send(messages: Sequence[Message]) -> ChatReply:
        reply = await context.chat(role, messages, candidate=candidate, max_tokens=max_tokens, temperature=temperature)
        paid = reply.paid
        context.log(
            Answered(
                agent=agent,
                role=role,
                prompt_tokens=paid.prompt_tokens,
                completion_tokens=paid.completion_tokens,
                cached_tokens=paid.cached_tokens,
            )
        )
        return reply

    return await read_reply(context, send, prompt, read, Asker(role, agent, candidate), whole=whole)


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
    """Like `ask`, for callers that can do without an answer: returns None if no reply came (the event
    ``reply.missing``) or it can't be read.
    """
    try:
        return await ask(context, role, prompt, read, agent=agent, candidate=candidate, max_tokens=max_tokens)
    except UnparsableReplyError:
        return None
    except LLMError as error:
        context.log("reply.missing", agent=agent, role=role, candidate=candidate, error=str(error))
        return None


def tokens_by_agent(events: Iterable[Event]) -> dict[str, Usage]:
    """The tokens that each agent's answers took, from a run's events; failed calls are not counted."""
    sums: dict[str, Usage] = {}
    for event in events:
        if event.kind == Answered.kind:
            answer = Answered.from_json(event.data)
            usage = Usage(answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens)
            sums[answer.agent] = sums.get(answer.agent, Usage()) + usage
    return sums
