"""Answers with the words of a simulated world, as long as the answers of a model that were recorded."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from bench._lib.methods.recording import role_told_by
from bench._lib.methods.recording_server import PRESET
from flowevolve.core.model import ChatRequest, Message
from flowevolve.sim.profiles import OutputLength
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

MOST_TOKENS = 8192


_WORLD = RulesWorld(PRESETS[PRESET])


def words(request: ChatRequest) -> str:
    """The answer to a request. Equal requests get the same answer, whichever server they are sent to."""
    return _WORLD.reply(request, random.Random(f"{request.seed} {request.messages!r}"))


@dataclass(frozen=True, slots=True)
class Told:
    """An answer's tokens, as the server counted them."""

    tokens: int | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was asked and how long the answer was; ``answer`` is None if none came."""

    messages: tuple[Message, ...]
    answer: Told | None = None


_EXCHANGES = TypeAdapter(list[Exchange])


def read_exchanges(bodies: bytes) -> list[Exchange]:
    """Read the exchanges from the bodies of chats that a recording server keeps."""
    return _EXCHANGES.validate_json(bodies)


@dataclass(frozen=True, slots=True)
class CountedTokens(OutputLength):
    """Gives the answer that was drawn last its length. A simulated server draws an answer and its length in one go."""

    drawn: list[int] = field(default_factory=list)

    def draw(self, rng: random.Random, visible: int) -> int:
        return self.drawn.pop()


class RecordedLengths:
    """A world of `words`, whose answers are as long as recorded ones.

    ``output`` gives an answer as many tokens as one of the recorded answers to the same example had or, if there are
    none, to the same kind of request.
    """

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._by_example: dict[str, list[int]] = defaultdict(list)
        self._by_role: dict[str, list[int]] = defaultdict(list)
        for exchange in exchanges:
            if exchange.answer is not None and exchange.answer.tokens is not None:
                asked = exchange.messages[-1].content
                self._by_example[_example(asked)].append(exchange.answer.tokens)
                self._by_role[role_told_by(asked)].append(exchange.answer.tokens)
        self.output = CountedTokens(0.0, 0.0, MOST_TOKENS)

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        asked = request.messages[-1].content
        role = role_told_by(asked)
        known = self._by_example.get(_example(asked)) if role == "rollout" else None
        tokens = rng.choice(known or self._by_role.get(role) or self._by_role["rollout"])
        self.output.drawn.append(tokens or 1)
        return words(request)

    def __repr__(self) -> str:
        return f"RecordedLengths({sum(map(len, self._by_role.values()))} answers)"


def _example(asked: str) -> str:
    """The beginning of a prompt, which identifies its example."""
    return asked[:200]
