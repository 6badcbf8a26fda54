"""CSE's settings."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from flowevolve.algorithms.cse.memory import LIMIT_TOKENS, STEPS_KEPT
from flowevolve.experience.settings import GlobalMemorySettings
from flowevolve.stages import WritingSettings
from flowevolve.stages.forms import FormSetting


class CSEConfig(WritingSettings):
    """Defaults are those of Controlled Self-Evolution (arXiv 2601.07348, appendix C).

    ``planning``, ``evolution`` and ``local_memory`` switch off what its ablations leave out, and so does a ``memory``
    without a location. They can be combined in any way.
    """

    plans: int = Field(default=5, gt=0)
    """Programs to begin with, each written to a plan of its own."""
    planning: bool = True
    """Whether there are plans; otherwise the same number of programs is written without plans."""
    evolution: bool = True
    """Whether parents are taken apart, for mutations and crossovers that keep what is good. Otherwise a child is
    written from one parent, which may be changed anywhere.
    """
    form: FormSetting = "whole"
    """How children are written: SEARCH/REPLACE edits of their first parent, whole, or ``mixed``."""
    epsilon: float = Field(default=0.001, gt=0)
    """Where a problem measures the integral A of memory over time, a program's reward is 1 / (A + epsilon)."""
    local_memory: bool = True
    """Whether prompts for programs show what was learnt in this run."""
    compress_tokens: int = Field(default=LIMIT_TOKENS, gt=0)
    """The local memory may have this many tokens, by an estimate, before it is compressed."""
    memory: GlobalMemorySettings = GlobalMemorySettings()
    """The global memory: what was learnt with other tasks."""
    queries: int = Field(default=3, gt=0)
    """Searches in the global memory for each child."""
    recalled: int = Field(default=3, gt=0)
    """Each search finds at most this many entries."""
    distilled_steps: int = Field(default=STEPS_KEPT, gt=0, le=STEPS_KEPT)
    """At the end, entries of the global memory are made from at most this many steps that raised the reward most, and
    as many that lowered it most.
    """

    @property
    def learns(self) -> bool:
        """Whether steps are reflected on."""
        return self.local_memory or self.memory.location is not None

    @property
    def named_roles(self) -> Sequence[str]:
        """The roles that the embedder of the global memory calls, and those of all program algorithms."""
        remembering = () if self.memory.location is None else self.memory.embedding.roles
        return (*remembering, *super().named_roles)
