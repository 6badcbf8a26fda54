"""How ContextEvolve's agents are shown programs: in words where these are described, else as they are."""

from __future__ import annotations

from flowevolve.agents.abstracts import ABSTRACT
from flowevolve.archives.elites import works
from flowevolve.pool import Candidate
from flowevolve.programs.prompts import Shown
from flowevolve.stages.summarize import in_words


def score_of(program: Candidate) -> float | None:
    """None where it failed."""
    return program.mean_score if works(program) else None


def as_it_is(program: Candidate) -> Shown:
    """With its code and all that was said of it, as whoever writes programs sees it."""
    return Shown(program.artifact, score_of(program), str(program.attributes.get("feedback", "")))


def for_agents(program: Candidate) -> Shown:
    """By its abstract, or its code where it has none, and its score."""
    words = in_words(program)
    return Shown({ABSTRACT: words} if words else program.artifact, score_of(program))
