"""GEPA's settings. A setting that the package gepa has too bears the same name, or its docstring gives gepa's name for
it in parentheses.
"""

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
    """The archive that parents are selected from, and its settings."""
    candidate_selection: Literal["pareto", "current_best", "epsilon_greedy", "top_k_pareto"] = "pareto"
    epsilon: float = Field(default=0.1, ge=0, le=1)
    """For ``epsilon_greedy``: the probability of taking a random candidate instead of the best."""
    top_k: int = Field(default=5, gt=0)
    """For ``top_k_pareto``: how many of the best are considered."""
    component_selector: Literal["round_robin", "all"] = "round_robin"
    acceptance: Literal["strict_improvement", "improvement_or_equal", "paired"] = "strict_improvement"
    """``paired`` runs a proposal and its parent on the minibatch again as long as their difference may be due to
    chance.
    """
    acceptance_z: float = Field(default=1.0, gt=0)
    """For ``paired``: how many standard errors the difference must exceed."""
    acceptance_repeats: int = Field(default=3, gt=0)
    """For ``paired``: at most this many further runs of both."""
    validation: Literal["everything", "improvement", "front"] | None = None
    """Which validated candidates enter the pool. Unset: ``everything``, as published, unless evaluation speculates or
    races by the mean score; then ``improvement``, as in FlashEvolve.
    """
    reflection_prompt: Literal["own", "gepa"] = "own"
    """``gepa``: the prompt that the installed package gepa uses without a ``reflection_prompt_template``."""
    skip_perfect: bool = True
    """End a flow whose minibatch has nothing left to improve (``skip_perfect_score``)."""
    group: bool = False
    """Merge the edits that wait for validation and validate them together."""
    balance: float = Field(default=1.0, gt=0)
    """With ``group``: edits are merged once they have cost as much as this many validations."""
    optimism: float = Field(default=0.75, ge=0, le=1)
    """With ``group``: the probability that the parent is the newest group under validation or, if there is none, the
    best candidate. Otherwise ``candidate_selection`` decides.
    """
    finalists: int = Field(default=0, ge=0)
    """At the end, run this many of the best candidates on fresh examples, and choose the winner by all their scores.
    Below 2, the best candidate by validation wins.
    """
    final_examples: int = Field(default=50, gt=0)
    """Run each finalist on at most this many fresh examples."""
    prune: bool = False
    """When edits no longer improve the best candidate, take lines out of it, and keep the result if it is better."""
    remeasure: bool = False
    """When edits no longer improve the best candidate, run it on the validation set again, as long as scores vary
    between repeats. Its scores are then the means of all runs.
    """
    merge: bool = False
    """Join two lineages after an accepted proposal (``use_merge``; off in gepa.optimize, on in dspy.GEPA)."""
    max_merges: int = Field(default=5, ge=0)
    """At most this many accepted merges (``max_merge_invocations``)."""
    merge_sample: int = Field(default=5, gt=0)
    """Validation examples a merge is tested on."""

    @model_validator(mode="after")
    def _merged_once(self) -> Self:
        if self.group and self.merge:
            raise ValueError(
                "group and merge are both true, but lineages of edits that are merged in groups need no joining; set "
                "merge = false"
            )
        return self
