"""How long the answers of a recorded run were, for a simulated server whose answers are to have the same lengths.

The ``extra`` of a request tells the server which role and stage the request comes from.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flowevolve._util.json_types import JSON
from flowevolve.core.model import ChatRequest, Usage

ROLE, STAGE = "role", "stage"


def tags(role: str, stage: str) -> dict[str, JSON]:
    """The entries of a request's ``extra`` for its role and stage, so that its answer is as long as those to similar
    requests.
    """
    return {ROLE: role, STAGE: stage}


@dataclass(frozen=True, slots=True)
class MeasuredLengths:
    """Lengths in tokens, each of one answer."""

    by_work: Mapping[tuple[str, str], Sequence[int]]
    """The lengths of whole answers, by role and stage."""
    hidden: Mapping[str, Sequence[int]]
    """By role, how many tokens answers had beyond their text, for example for thoughts."""
    tokens_per_estimate: float = 1.0
    """The number of prompt tokens that the server counted, divided by the number that `flowevolve.sim.service_model`
    estimates.
    """
    factor: float = 1.0
    """All lengths that are drawn are multiplied by this."""

    def scaled(self, factor: float) -> MeasuredLengths:
        return replace(self, factor=self.factor * factor)

    def draw_output(self, request: ChatRequest, rng: random.Random, visible: int) -> int:
        """Draw the number of tokens of an answer whose text has ``visible`` tokens.

        This is the length of an answer that was measured for the same role and stage. If there was none, it is
        ``visible`` plus the hidden tokens of an answer of the same role, or else of any role.
        """
        role, stage = str(request.extra.get(ROLE, "")), str(request.extra.get(STAGE, ""))
        whole = self.by_work.get((role, stage))
        if whole:
            return max(1, round(self.factor * rng.choice(whole)))
        hidden = self.hidden.get(role) or [tokens for each in self.hidden.values() for tokens in each]
        return max(1, round(self.factor * (visible + rng.choice(hidden))))

    def counted(self, usage: Usage) -> Usage:
        """The usage of a call as the measured server would count it, given the usage with estimated prompt tokens."""
        prompt, cached = (round(self.tokens_per_estimate * n) for n in (usage.prompt_tokens, usage.cached_tokens))
        return Usage(prompt, usage.completion_tokens, cached)
