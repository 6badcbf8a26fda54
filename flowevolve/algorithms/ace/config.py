"""ACE's settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from flowevolve._util.settings import Settings
from flowevolve.experience.settings import EmbeddingSettings


class ACEConfig(Settings):
    """Defaults are those of ACE (arXiv 2510.04618) and its published code, but for the smaller token budget."""

    adaptation: Literal["offline", "online"] = "offline"
    """``offline``: epochs over the training examples, validated on the way; ``online``: windows of the training
    examples in their order, each tested and then learnt from.
    """
    epochs: int = Field(default=5, gt=0)
    """Offline: how often every training example is learnt from."""
    validate_every: int = Field(default=100, gt=0)
    """Offline: the number of samples from one validation to the next."""
    window: int = Field(default=20, gt=0)
    """Online: the number of examples in a window."""
    max_rounds: int = Field(default=3, gt=0)
    """At most this many times, a wrong answer is reflected on and tried again."""
    curator_frequency: int = Field(default=1, gt=0)
    """Samples from one curation to the next; their lessons are curated together."""
    fan_in: int | None = Field(default=None, ge=2)
    """One call gets the lessons of at most this many samples. The lessons of more samples are first combined in a tree
    of such calls, as in Combee (arXiv 2604.04247). None: the curator gets all of them as they are.
    """
    copies: int = Field(default=2, gt=0)
    """With ``fan_in``: the number of groups that the lessons of each sample are put into at first."""
    refine_every: int = Field(default=20, ge=0)
    """The number of curations from one search for bullets that say the same to the next; 0: never."""
    duplicate: float = Field(default=0.90, ge=0, le=1)
    """At this cosine similarity or above, two bullets say the same."""
    unlike: float = Field(default=0.60, ge=0, le=1)
    """Below this cosine similarity to all bullets that were added meanwhile, a new bullet is added without asking a
    model.
    """
    embedding: EmbeddingSettings = EmbeddingSettings()
    """The embedder that turns bullets into the vectors that are compared."""
    token_budget: int = Field(default=8000, gt=0)
    """A prompt shows at most this many tokens of the playbook; the least helpful bullets are left out."""
    sections: tuple[str, ...] = Field(default=("strategies", "formulas", "mistakes", "context"), min_length=1)
    playbook: Path | None = None
    """A file with bullets to start from, in the form in which prompts show a playbook."""

    @property
    def named_roles(self) -> Sequence[str]:
        """The roles that the embedder calls."""
        return self.embedding.roles

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.duplicate < self.unlike:
            raise ValueError(
                f"duplicate is {self.duplicate:g}, but has to be at least unlike, which is {self.unlike:g}; a model is "
                "asked about bullets whose similarity is between the two"
            )
        return self
