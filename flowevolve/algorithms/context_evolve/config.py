"""ContextEvolve's settings."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from flowevolve._util.settings import Settings
from flowevolve.prompts.abstracts import TrajectoryKind
from flowevolve.stages import WritingSettings


class TrajectoriesSettings(Settings):
    """What the Navigator is shown. The paper leaves all of it open."""

    count: int = Field(default=6, gt=0)
    steps: int = Field(default=3, gt=0)
    """Steps that a trajectory has at most."""
    ends: int = Field(default=100, gt=0)
    """Trajectories end with one of the newest programs: so many of these."""
    improvement: float = Field(default=0.4, ge=0)
    mixed: float = Field(default=0.2, ge=0)
    decline: float = Field(default=0.4, ge=0)
    """Weights of the kinds. Consistent trajectories say most plainly what a kind of change is worth."""

    @property
    def weights(self) -> Mapping[TrajectoryKind, float]:
        return {"improvement": self.improvement, "mixed": self.mixed, "decline": self.decline}

    @model_validator(mode="after")
    def _some_weight(self) -> TrajectoriesSettings:
        if not any(self.weights.values()):
            raise ValueError("improvement, mixed, decline: all weights are 0; give one of them more")
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
    """Above 0: no agents; so many programs are shown as they are, half of them the best and half the newest."""
    examples: int = Field(default=3, ge=0)
    """Programs shown beside the parent, at most."""
    shown: int = Field(default=12, gt=0)
    """Programs that the Sampler chooses from, at most."""
    guidance_age: int | None = Field(default=None, ge=0)
    """How many commits old guidance may be. None: one fewer than there are steps in flight, which is 0 if there is one
    step at a time, as published.
    """
    trajectories: TrajectoriesSettings = TrajectoriesSettings()
    failed_parents: bool = False
    """Whether programs that failed may be parents, behind all that work."""
