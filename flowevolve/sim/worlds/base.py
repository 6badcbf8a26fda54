"""The interface of a simulated world: which texts a simulated server answers with, apart from how fast it does."""

from __future__ import annotations

import random
from typing import Protocol

from flowevolve.core.model import ChatRequest


class World(Protocol):
    """Writes the texts that a chat model in this world answers with."""

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        """Return the visible text of the answer.

        This must be a pure function of the arguments, so that the order of calls changes nothing.
        """
        ...
