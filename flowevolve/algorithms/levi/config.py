"""LEVI's settings."""

from __future__ import annotations

from pydantic import Field, field_validator

from flowevolve.archives.descriptors import Placement
from flowevolve.stages import WritingSettings
from flowevolve.stages.forms import FormSetting


class LEVIConfig(WritingSettings):
    """Defaults are those of LEVI's table 5 where it has them."""

    seeds: int = Field(default=4, ge=0)
    """Diverse seeds that the large model writes, one after the other, each unlike those before."""
    seed_tries: int = Field(default=3, gt=0)
    """Tries at each of these seeds. What went wrong in one is shown to the next."""
    variants: int = Field(default=20, ge=0)
    """Variants of each seed, written by the small model."""
    init_share: float = Field(default=0.5, gt=0, le=1)
    """The share of the budget that seeds and variants may take. If they would take more, there are fewer of them."""
    cells: int = Field(default=50, gt=1)
    centroids: Placement = "data"
    """``data``: cells around the first candidates; ``uniform``: cells of about the same size all over the space."""
    features: tuple[str, ...] | None = None
    """The features of their texts by which candidates are told apart. Unset: six counts of a program's syntax, or the
    length of a prompt.
    """
    outputs: tuple[str, ...] | None = None
    """The results by which candidates are told apart as well: ``scores`` (on each case or example), or names of
    metrics. Unset: ``scores``, if there are several.
    """
    temperatures: tuple[float, ...] = Field(default=(0.3, 0.7, 1.0, 1.2), min_length=1)
    """Temperatures of the softmax by which parents are sampled. They are used in turn."""
    inspiration: float = Field(default=0.8, ge=0, le=1)
    """The probability that a second program or prompt is shown."""
    form: FormSetting = "whole"
    """How a model is asked to change a program: by SEARCH/REPLACE edits, as a whole, or ``mixed``."""
    minibatch: int = Field(default=3, gt=0)
    """Training examples that a prompt is run on before it is rewritten."""
    shift_every: int = Field(default=10, ge=0)
    """Evaluations between two paradigm shifts by the large model; 0: none."""
    shift_stagnation: int = Field(default=25, ge=0)
    """Evaluations in a row without a better score after which there is one more shift; 0: none."""
    shift_clusters: int = Field(default=3, gt=0)
    """The large model is shown this many representatives of the archive."""
    shift_variants: int = Field(default=3, ge=0)
    """Variants that the small model writes of a shift that has won a cell of the archive."""
    advice_every: int = Field(default=50, ge=0)
    """Evaluations between two looks back, in which advice is written; 0: none."""
    advice_tokens: int = Field(default=400, gt=0)
    advice: float = Field(default=0.8, ge=0, le=1)
    """The probability that advice is shown."""
    cascade_examples: int = Field(default=0, ge=0)
    """Cases or examples that are run first; 0: all at once."""
    cascade_fraction: float = Field(default=0.8, ge=0, le=1)
    """Candidates that score less on these than this share of the best one's score are rejected."""
    proxy: int = Field(default=0, ge=0)
    """Size of the proxy benchmark: examples that rank the seeds as all validation examples do. 0: always use all."""
    finalists: int = Field(default=5, gt=0)
    """With a proxy benchmark: elites that are scored on all examples at the end; fewer if the budget is too small."""

    @field_validator("temperatures")
    @classmethod
    def _positive(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if min(value) <= 0:
            raise ValueError(f"each temperature has to be above 0, and one is {min(value):g}")
        return value
