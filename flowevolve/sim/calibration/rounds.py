"""Sends a server many requests at once, with prompts that it has not seen and answers of a set length."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from flowevolve._util import clock
from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import run_all
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    LLMError,
    Message,
    OverloadedError,
    RefusedError,
    Transport,
    Usage,
)

TO_THE_END: Mapping[str, JSON] = {"ignore_eos": True}
"""Makes vLLM and similar servers write up to the token limit. Other servers refuse this or ignore it."""

_NAMES = (
    "harbour",
    "station",
    "council",
    "orchard",
    "library",
    "mill",
    "quarry",
    "school",
    "market",
    "bridge",
    "museum",
)
_DEEDS = (
    "opened a second hall",
    "was rebuilt in stone",
    "bought the land beside the river",
    "lost half of its visitors",
    "moved to the other side of the valley",
    "hired three engineers",
    "closed for the winter",
    "began to print its own newspaper",
)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: its prompt, and how many tokens its answer may have."""

    prompt: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """How one request was answered."""

    seconds: float
    usage: Usage
    text: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Round:
    """Requests that were sent at the same time. ``seconds`` is the time until the last answer."""

    answers: Sequence[Answer]
    seconds: float

    @property
    def longest(self) -> int:
        """The tokens of the longest answer."""
        return max(answer.usage.completion_tokens for answer in self.answers)


class Texts:
    """Prompts of English prose. No two begin alike, so a server can have one in its cache only if it was asked with the
    same seed before.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def prompt(self, characters: int) -> str:
        """A prompt of about this many characters that asks for a long answer."""
        begun = f"Chronicle {self._rng.randrange(10**9)}. "
        prose = "".join(self._sentences(characters - len(begun) - len(_TASK)))
        return begun + prose + _TASK

    def _sentences(self, characters: int) -> Iterator[str]:
        while characters > 0:
            sentence = (
                f"In {self._rng.randrange(1600, 2000)} the {self._rng.choice(_NAMES)} {self._rng.choice(_DEEDS)}. "
            )
            yield sentence
            characters -= len(sentence)


_TASK = "Go on with this chronicle in a thousand words."
_TIMEOUT_SECONDS = 120.0


class AskedServer:
    """A server, with the number of requests that it has answered so far and the tokens that these took.

    Raises:
        BackendRefusedError: (every method) if the server refuses the model or the key.
        BackendUnreachableError: (every method) if it does not answer.
        OverloadedError: (every method) if it says that this is too much.
    """

    def __init__(self, transport: Transport, model: str) -> None:
        self.requests = 0
        self.usage = Usage()
        self._transport = transport
        self._model = model
        self._extra = TO_THE_END

    async def together(self, asks: Sequence[Ask]) -> Round:
        """Send all of these at the same time."""
        began = clock.now()
        answers = await run_all([partial(self.ask, ask) for ask in asks])
        return Round(answers, clock.now() - began)

    async def ask(self, ask: Ask) -> Answer:
        """Send one request. Its answer goes on to the token limit, if the server accepts `TO_THE_END`."""
        return await self._answered(ask, self._extra)

    async def ask_freely(self, ask: Ask) -> Answer:
        """Send one request whose answer ends where the model ends it."""
        return await self._answered(ask, {})

    async def _answered(self, ask: Ask, extra: Mapping[str, JSON]) -> Answer:
        began = clock.now()
        reply = await self._chat(ask, extra)
        self.requests += 1
        self.usage += reply.usage
        return Answer(clock.now() - began, reply.usage, reply.text, reply.headers or {})

    async def _chat(self, ask: Ask, extra: Mapping[str, JSON]) -> ChatReply:
        request = ChatRequest(self._model, (Message("user", ask.prompt),), max_tokens=ask.tokens, extra=extra)
        try:
            return await self._transport.chat(request, timeout=_TIMEOUT_SECONDS)
        except OverloadedError:
            raise
        except RefusedError as error:
            raise BackendRefusedError(
                f"calibrate: {error}; check the URL, the model, and the key with --api-key-env"
            ) from error
        except LLMError as error:
            if extra and error.status == 400:
                self._extra = {}
                return await self._chat(ask, {})
            raise BackendUnreachableError(f"calibrate: a request failed: {error}") from error
