"""How ContextEvolve's agents are shown programs: in words where these are described, else as they are."""

from __future__ import annotations

from flowevolve.agents.abstracts import ABSTRACT
from flowevolve.pool import Candidate
from flowevolve.programs.prompts import ShownProgram
from flowevolve.stages.coding import as_shown
from flowevolve.stages.summarize import in_words


def for_agents(program: Candidate) -> ShownProgram:
    """By its abstract, or its code where it has none, and its score."""
    words = in_words(program)
    return ShownProgram({ABSTRACT: words} if words else program.artifact, as_shown(program).score)
