"""How long the answers of a recorded run were, for a simulated server that is to give answers of these lengths.

The server is told by a request's ``extra`` which role and stage it comes from.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flowevolve._util.json_types import JSON
from flowevolve.core.model import ChatRequest, Usage

ROLE, STAGE = "role", "stage"


def tags(role: str, stage: str) -> dict[str, JSON]:
    """What a request has in its ``extra``, so that its answer is as long as those to others like it."""
    return {ROLE: role, STAGE: stage}


@dataclass(frozen=True, slots=True)
class MeasuredLengths:
    """Lengths in tokens, each of one answer."""

    by_work: Mapping[tuple[str, str], Sequence[int]]
    """Of whole answers, by role and stage."""
    hidden: Mapping[str, Sequence[int]]
    """By role, what answers had beyond their text, such as thoughts."""
    tokens_per_estimate: float = 1.0
    """The tokens of prompts that the server counted, over those that `flowevolve.sim.service_model` estimates."""
    factor: float = 1.0
    """By which all of this is taken to be longer."""

    def scaled(self, factor: float) -> MeasuredLengths:
        return replace(self, factor=self.factor * factor)

    def draw_output(self, request: ChatRequest, rng: random.Random, visible: int) -> int:
        """Draw the tokens of an answer, whose text has ``visible`` tokens: from those measured in the same work, else
        as many hidden ones as an answer of the role had, else of any role.
        """
        role, stage = str(request.extra.get(ROLE, "")), str(request.extra.get(STAGE, ""))
        whole = self.by_work.get((role, stage))
        if whole:
            return max(1, round(self.factor * rng.choice(whole)))
        hidden = self.hidden.get(role) or [tokens for each in self.hidden.values() for tokens in each]
        return max(1, round(self.factor * (visible + rng.choice(hidden))))

    def counted(self, usage: Usage) -> Usage:
        """The usage as the measured server would count it, of a call with these estimated tokens in its prompt."""
        prompt, cached = (round(self.tokens_per_estimate * n) for n in (usage.prompt_tokens, usage.cached_tokens))
        return Usage(prompt, usage.completion_tokens, cached)
