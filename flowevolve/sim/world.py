"""What a world is: the text side of a simulated server, apart from how fast it answers."""

from __future__ import annotations

import random
from typing import Protocol

from flowevolve.llm.types import ChatRequest


class World(Protocol):
    """Answers a chat as a model that lives in this world would."""

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        """The visible text. A pure function of its arguments, so that the order of calls changes nothing."""
        ...
