"""What a server records of the methods that call it: a span for every request, in the same way for all methods."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from aiohttp import web
from aiohttp.typedefs import Handler

from flowevolve.prompts.reflection import JUDGE_TITLE, MERGE_EDITS_TITLE, MERGE_TITLE, REFLECT_TITLE

CHAT = "/v1/chat/completions"
RECORDING = "/recording"
"""The path at which GET returns the spans since the last DELETE. DELETE clears them and, if possible, the server's
cache of prompts.
"""
REQUESTS = "/recording/requests"
"""The path at which GET returns the bodies of the chats since the last DELETE, if the server keeps them."""

Role = Literal["rollout", "reflection", "judge", "merge", "group"]
"""What a request is for. ``merge`` makes one proposal of many reflections, as in Combee; ``group`` works edits that
were proposed one by one into one candidate, so that they are validated together.
"""

_TITLES: Mapping[str, Role] = {
    REFLECT_TITLE: "reflection",
    MERGE_TITLE: "merge",
    MERGE_EDITS_TITLE: "group",
    JUDGE_TITLE: "judge",
}
_TOKENS = re.compile(rb'"completion_tokens": ?(\d+)')


@dataclass(frozen=True, slots=True)
class Span:
    """One request. Times are monotonic seconds; a request that is still open, or was given up, has no tokens."""

    begun: float
    ended: float
    role: Role
    characters: int
    """The length of all its messages."""
    max_tokens: int | None
    tokens: int | None
    """Output tokens of its answer, if it was answered."""


class Recorder:
    """Middleware that keeps a span of every chat and, with ``keeps_bodies``, what was asked and answered."""

    def __init__(self, *, keeps_bodies: bool = False) -> None:
        self._keeps_bodies = keeps_bodies
        self.bodies: list[dict[str, object]] = []
        self._spans: list[Span] = []
        self._open: dict[int, tuple[float, tuple[Role, int, int | None]]] = {}
        self._numbers = 0

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path != CHAT:
            return await handler(request)
        begun = time.monotonic()
        number, self._numbers = self._numbers, self._numbers + 1
        body = json.loads(await request.read())
        self._open[number] = begun, _look(body)
        if self._keeps_bodies:
            self.bodies.append(body)
        tokens: int | None = None
        try:
            response = await handler(request)
            if isinstance(response, web.Response) and response.status == 200 and isinstance(response.body, bytes):
                found = _TOKENS.search(response.body)
                tokens = int(found[1]) if found else None
                if self._keeps_bodies:
                    body["answer"] = {"text": _text(response.body), "tokens": tokens}
            return response
        finally:
            if (kept := self._open.pop(number, None)) is not None:
                self._spans.append(Span(begun, time.monotonic(), *kept[1], tokens))

    def spans(self) -> list[Span]:
        """All spans; those that are still open end now."""
        now = time.monotonic()
        return self._spans + [Span(begun, now, *rest, None) for begun, rest in self._open.values()]

    def clear(self) -> None:
        """Forget all spans; requests that are open now will leave none."""
        self._spans = []
        self._open = {}
        self.bodies = []


def _text(answer: bytes) -> str:
    return str(json.loads(answer)["choices"][0]["message"]["content"] or "")


def _look(body: dict[str, object]) -> tuple[Role, int, int | None]:
    """The role of a request, its length in characters, and the most tokens it asks for."""
    most = body.get("max_tokens")
    return role_of(body), sum(map(len, _texts(body))), most if isinstance(most, int) else None


def role_of(body: dict[str, object]) -> Role:
    """What a request is for, recognized by its last message."""
    return role_told_by(_texts(body)[-1])


def role_told_by(asked: str) -> Role:
    """What a request is for, recognized by the title of its last message, ``asked``."""
    return next((role for title, role in _TITLES.items() if asked.startswith(title)), "rollout")


def _texts(body: dict[str, object]) -> list[str]:
    messages = body["messages"]
    assert isinstance(messages, list)
    return [str(message["content"]) for message in messages]
