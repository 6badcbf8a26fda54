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
    """Programs to begin with, each to a plan of its own."""
    planning: bool = True
    """Whether there are plans; else as many programs are written without plans."""
    evolution: bool = True
    """Whether parents are taken apart, for mutations and crossovers that keep what is good. Otherwise a child is
    written from one parent, which may be changed anywhere.
    """
    form: FormSetting = "whole"
    """How children are written: SEARCH/REPLACE edits of their first parent, whole, or ``mixed``."""
    epsilon: float = Field(default=0.001, gt=0)
    """Where a problem measures the integral A of memory over time, a program's reward is 1 / (A + epsilon)."""
    local_memory: bool = True
    """Whether programs are written by what was learnt in this run."""
    compress_tokens: int = Field(default=LIMIT_TOKENS, gt=0)
    """How many tokens that memory may have, by an estimate, before it is made shorter."""
    memory: GlobalMemorySettings = GlobalMemorySettings()
    """What was learnt with other tasks."""
    queries: int = Field(default=3, gt=0)
    """Searches in that memory for each child."""
    recalled: int = Field(default=3, gt=0)
    """Entries that each search may find."""
    distilled_steps: int = Field(default=STEPS_KEPT, gt=0, le=STEPS_KEPT)
    """Steps that raised the reward most, and that lowered it most, from which entries are made in the end."""

    @property
    def learns(self) -> bool:
        """Whether steps are reflected on."""
        return self.local_memory or self.memory.location is not None

    @property
    def named_roles(self) -> Sequence[str]:
        """The roles that the embedder of the global memory calls, and those of all program algorithms."""
        remembering = () if self.memory.location is None else self.memory.embedding.roles
        return (*remembering, *super().named_roles)
