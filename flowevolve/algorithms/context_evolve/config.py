"""ContextEvolve's settings."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from flowevolve._util.settings import Settings
from flowevolve.prompts.abstracts import TrajectoryKind
from flowevolve.stages import WritingSettings


class TrajectoriesSettings(Settings):
    """What the Navigator is shown. The paper specifies none of it."""

    count: int = Field(default=6, gt=0)
    steps: int = Field(default=3, gt=0)
    """A trajectory has at most this many steps."""
    ends: int = Field(default=100, gt=0)
    """Every trajectory ends with one of this many newest programs."""
    improvement: float = Field(default=0.4, ge=0)
    mixed: float = Field(default=0.2, ge=0)
    decline: float = Field(default=0.4, ge=0)
    """The weights of the three kinds. Consistent trajectories show most clearly what a kind of change is worth."""

    @property
    def weights(self) -> Mapping[TrajectoryKind, float]:
        return {"improvement": self.improvement, "mixed": self.mixed, "decline": self.decline}

    @model_validator(mode="after")
    def _some_weight(self) -> TrajectoriesSettings:
        if not any(self.weights.values()):
            raise ValueError("improvement, mixed and decline are all 0, but one of these weights has to be above 0")
        return self


class ContextEvolveConfig(WritingSettings):
    """Each agent can be switched off alone, as in the paper's figure 2c."""

    summarizer: bool = True
    """Without it, the other agents are shown programs as they are, instead of abstracts."""
    navigator: bool = True
    """Without it, programs are written without guidance."""
    sampler: bool = True
    """Without it, the best programs are the examples."""
    raw_history: int = Field(default=0, ge=0)
    """Above 0: no agents; this many programs are shown as they are, half of them the best and half the newest."""
    examples: int = Field(default=3, ge=0)
    """At most this many programs are shown beside the parent."""
    shown: int = Field(default=12, gt=0)
    """The Sampler chooses from at most this many programs."""
    guidance_age: int | None = Field(default=None, ge=0)
    """Guidance may be at most this many commits old. None: one fewer than there are steps in flight, which is 0 if
    there is one step at a time, as published.
    """
    trajectories: TrajectoriesSettings = TrajectoriesSettings()
    failed_parents: bool = False
    """Whether programs that failed may be parents, ranked behind all that work."""
