"""Replies that had arrived for work that was unfinished when a run was interrupted. They are used instead of new calls.

Within one stage's work on one item, replies are returned in the order in which they arrived, because that order decides
what a stage hands on early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import anyio

from flowevolve._util.tasks import Pulse
from flowevolve.core.calls import CallScope
from flowevolve.core.item_ids import WorkPart
from flowevolve.core.model import ChatReply, EmbedReply, LLMError, Message, Usage

Reply = TypeVar("Reply", ChatReply, EmbedReply)
PATIENCE_SECONDS = 1.0
"""How long a reply waits for those that arrived before it. It waits that long only if one is never asked for."""

Asked = tuple[Message, ...] | tuple[str, ...]
"""The messages of a chat, or the texts to embed in one request; never empty."""
Key = tuple[WorkPart, int, Asked]
"""The work that a call is part of, its index, and what was asked. Concurrent calls may share the first two."""


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A finished call: the work that it belongs to, what was asked, and the reply or the error."""

    stage: str
    work: WorkPart
    index: int
    asked: Asked
    reply: ChatReply | EmbedReply | LLMError

    @property
    def key(self) -> Key:
        return self.work, self.index, self.asked

    @property
    def paid(self) -> tuple[str, Usage]:
        """The model, and the tokens that were paid for."""
        reply = self.reply
        return reply.model, reply.usage if isinstance(reply, LLMError) else reply.paid


class RecordedReplies:
    """The replies of one run that are to be used again, by the work to which they belong."""

    def __init__(self, calls: Iterable[AnsweredCall] = ()) -> None:
        self._by_work: dict[tuple[str, str], _Work] = {}
        for call in calls:
            self._by_work.setdefault((call.stage, call.work.item), _Work()).add(call)

    def forget(self, stage: str, item: str) -> list[tuple[str, Usage]]:
        """Drop the replies of work that has ended without asking for them again.

        Returns the model and the tokens of each.
        """
        work = self._by_work.pop((stage, item), None)
        calls = [] if work is None else work.calls
        return [call.paid for call in calls]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._by_work)

    @property
    def paid(self) -> list[tuple[str, Usage]]:
        """The model and the tokens of each call that was not asked for again yet."""
        return [call.paid for work in self._by_work.values() for call in work.calls]

    @property
    def left(self) -> int:
        """How many replies were not asked for again yet."""
        return sum(not isinstance(call.reply, LLMError) for work in self._by_work.values() for call in work.calls)

    async def reply(self, scope: CallScope, messages: Sequence[Message]) -> ChatReply | None:
        """The reply that came back when this was asked before; None if it was not asked.

        Raises:
            LLMError: if the call had failed for good.
        """
        return await self._find(scope, tuple(messages), ChatReply)

    async def embedded(self, scope: CallScope, texts: Sequence[str]) -> EmbedReply | None:
        """The vectors that came back when these texts were sent in one request before; None if they were not.

        Raises:
            LLMError: as in `reply`.
        """
        return await self._find(scope, tuple(texts), EmbedReply)

    async def _find(self, scope: CallScope, asked: Asked, kind: type[Reply]) -> Reply | None:
        work = self._by_work.get((scope.stage, scope.work.item))
        call = None if work is None else work.claim((scope.work, scope.index, asked))
        if work is None or call is None:
            return None
        with anyio.move_on_after(PATIENCE_SECONDS):
            await work.turn(call)
        work.leave(call)
        if isinstance(call.reply, LLMError):
            raise call.reply
        assert isinstance(call.reply, kind)
        return call.reply


class _Work:
    """The calls of one work, in the order in which they were answered."""

    def __init__(self) -> None:
        self.calls: list[AnsweredCall] = []
        self._unclaimed: dict[Key, deque[AnsweredCall]] = {}
        self._changed = Pulse()

    def add(self, call: AnsweredCall) -> None:
        self.calls.append(call)
        self._unclaimed.setdefault(call.key, deque()).append(call)

    def claim(self, key: Key) -> AnsweredCall | None:
        """The oldest call with this key that nobody has asked for again."""
        calls = self._unclaimed.get(key)
        return calls.popleft() if calls else None

    async def turn(self, call: AnsweredCall) -> None:
        """Wait until all calls that were answered before this one have been handed out."""
        while self.calls[0] is not call:
            await self._changed.wait()

    def leave(self, call: AnsweredCall) -> None:
        self.calls = [each for each in self.calls if each is not call]
        self._changed.fire()
