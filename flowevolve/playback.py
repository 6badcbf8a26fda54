"""Replies that had come in for work that was not finished when a run ended: they are used, not paid for again.

Within one stage's work on one item they come back in the order in which they came in then, because what a stage hands
on early depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import anyio

from flowevolve.llm.calls import CallScope
from flowevolve.llm.types import ChatReply, Message

PATIENCE_SECONDS = 1.0
"""How long a reply waits for its turn; longer only if the stage no longer asks what it asked then."""

Key = tuple[str, int, tuple[Message, ...]]
"""Item, index and what was asked: calls made side by side may share the first two."""


@dataclass(frozen=True, slots=True)
class PlayedCall:
    """A finished call: which work it belongs to, what was asked, and what came back."""

    stage: str
    item: str
    index: int
    messages: tuple[Message, ...]
    reply: ChatReply


class Playback:
    """The replies of one run that are to be used again, by the work they belong to."""

    def __init__(self, calls: Iterable[PlayedCall] = ()) -> None:
        self.used = 0
        """Replies that were used again."""
        self._works: dict[tuple[str, str], _Work] = {}
        for call in calls:
            work = self._works.setdefault((call.stage, root_of(call.item)), _Work())
            work.calls.setdefault((call.item, call.index, call.messages), call)

    def forget(self, stage: str, item: str) -> Iterable[PlayedCall]:
        """Give up what a work that has ended did not ask for again; returns it, as it was paid for."""
        work = self._works.pop((stage, item), None)
        return () if work is None else work.calls.values()

    @property
    def left(self) -> int:
        """Replies not asked for yet."""
        return sum(len(work.calls) for work in self._works.values())

    async def reply(self, scope: CallScope, messages: Sequence[Message]) -> ChatReply | None:
        """What came back when this was asked before; None if it was not, or something else was asked."""
        work = self._works.get((scope.stage, root_of(scope.item)))
        if work is None:
            return None
        key = (scope.item, scope.index, tuple(messages))
        call = work.calls.get(key)
        if call is None:
            return None
        with anyio.move_on_after(PATIENCE_SECONDS):
            await work.turn(key)
        work.leave(key)
        if not work.calls:
            self._works.pop((scope.stage, root_of(scope.item)), None)
        self.used += 1
        return call.reply


class _Work:
    """The calls of one work, in the order in which they were answered."""

    def __init__(self) -> None:
        self.calls: dict[Key, PlayedCall] = {}
        self._waiting: dict[Key, anyio.Event] = {}

    async def turn(self, key: Key) -> None:
        """Wait until all that was answered before has been handed out."""
        while next(iter(self.calls)) != key:
            self._waiting[key] = anyio.Event()
            await self._waiting[key].wait()

    def leave(self, key: Key) -> None:
        self.calls.pop(key, None)
        self._waiting.pop(key, None)
        for waiting in self._waiting.values():
            waiting.set()
        self._waiting.clear()


def root_of(item: str) -> str:
    """The id of the item that a call belongs to: what follows a slash is a part of the work on it."""
    return item.partition("/")[0]
