"""GEPA's settings. One that the package gepa has too has the same name as there, or names that in its docstring."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from flowevolve._util.settings import OpenSettings, Settings


class ArchiveSettings(OpenSettings):
    name: str = "pareto"


class GEPAConfig(Settings):
    """Defaults are those of GEPA (arXiv 2507.19457) and gepa 0.1.4."""

    minibatch: int = Field(default=3, gt=0)
    """Training examples per proposal (``reflection_minibatch_size``)."""
    archive: ArchiveSettings = ArchiveSettings()
    """What parents are selected from, and its settings."""
    candidate_selection: Literal["pareto", "current_best", "epsilon_greedy", "top_k_pareto"] = "pareto"
    epsilon: float = Field(default=0.1, ge=0, le=1)
    """For ``epsilon_greedy``: the probability of taking any candidate."""
    top_k: int = Field(default=5, gt=0)
    """For ``top_k_pareto``: how many of the best are considered."""
    component_selector: Literal["round_robin", "all"] = "round_robin"
    acceptance: Literal["strict_improvement", "improvement_or_equal", "paired"] = "strict_improvement"
    """``paired``: a proposal and its parent are run again on the minibatch as long as chance may decide."""
    acceptance_z: float = Field(default=1.0, gt=0)
    """For ``paired``: of how many standard errors the difference has to be."""
    acceptance_repeats: int = Field(default=3, gt=0)
    """For ``paired``: how often both are run again at most."""
    validation: Literal["everything", "improvement", "front"] | None = None
    """Which validated candidates enter the pool. Unset: ``everything``, as published, unless evaluation speculates or
    races by the mean score; then ``improvement``, as in FlashEvolve.
    """
    reflection_prompt: Literal["own", "gepa"] = "own"
    """``gepa``: the prompt of the package gepa that is installed (without ``reflection_prompt_template``)."""
    skip_perfect: bool = True
    """End a flow whose minibatch has nothing left to improve (``skip_perfect_score``)."""
    group: bool = False
    """Merge the edits that wait for validation and validate them together."""
    balance: float = Field(default=1.0, gt=0)
    """A group leaves when as much was spent on its edits as this many validations cost."""
    optimism: float = Field(default=0.75, ge=0, le=1)
    """The probability that a parent is the newest group under validation, or else the best candidate."""
    finalists: int = Field(default=0, ge=0)
    """At the end, so many of the best candidates are run on fresh examples, and the winner is chosen by all that is
    known of them; below 2: the best by validation is it.
    """
    final_examples: int = Field(default=50, gt=0)
    """Fresh examples that each of the finalists is run on at most."""
    prune: bool = False
    """Take lines out of the best candidate when edits no longer make it better, and keep what is better without."""
    remeasure: bool = False
    """Run the best candidate on the validation set again when edits no longer make it better, as long as its scores
    vary between repeats; it then has the mean of its scores.
    """
    merge: bool = False
    """Join two lineages after an accepted proposal (``use_merge``; off in gepa.optimize, on in dspy.GEPA)."""
    max_merges: int = Field(default=5, ge=0)
    """Accepted merges at most (``max_merge_invocations``)."""
    merge_sample: int = Field(default=5, gt=0)
    """Validation examples a merge is tested on."""

    @model_validator(mode="after")
    def _merged_once(self) -> Self:
        if self.group and self.merge:
            raise ValueError(
                "group: edits are merged in groups, so that lineages need not be joined; set merge = false"
            )
        return self
