"""What flows between the shipped stages: frozen, plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from flowevolve.core.artifact import Artifact
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate
from flowevolve.core.task import Rollout


@payload
@dataclass(frozen=True, slots=True)
class Selected:
    """A parent, which of its components to rewrite, and the training examples to run it on (ids)."""

    parent: Candidate
    components: tuple[str, ...]
    batch: tuple[str, ...]


@payload
@dataclass(frozen=True, slots=True)
class Rolled:
    """A selection with its parent's rollouts, one per example of the batch, in order."""

    selected: Selected
    rollouts: tuple[Rollout, ...]


@payload
@dataclass(frozen=True, slots=True)
class Proposed:
    """A new candidate and what it has to beat: ``baseline`` holds scores on the examples of ``batch``.

    ``baseline`` is None if these scores are not known, because a repaired proposal has another parent than the one that
    was run. Then the first parent is run beside the candidate.
    """

    candidate: Candidate
    batch: tuple[str, ...]
    baseline: tuple[float, ...] | None
    split: Literal["train", "val"] = "train"
    """Where the batch comes from; a merged candidate is screened on validation examples."""
    origin: Artifact | None = None
    """The artifact from which it was made, in case that is gone from the pool by the time it is needed."""
    scores: tuple[float, ...] = ()
    """The candidate's own scores on the batch, once it has been run there."""


@payload
@dataclass(frozen=True, slots=True)
class Evaluated:
    """A candidate with its score on every validation example."""

    candidate: Candidate


@payload
@dataclass(frozen=True, slots=True)
class Remeasured:
    """A candidate of the pool with the scores of one more run on the validation set."""

    candidate: Candidate
    scores: Mapping[str, float]


@payload
@dataclass(frozen=True, slots=True)
class Written:
    """A new program, to be assessed."""

    candidate: Candidate


@payload
@dataclass(frozen=True, slots=True)
class Assessed:
    """A candidate with its score on every case, and ``feedback``, ``failure`` and ``metrics`` among its attributes.

    ``failure`` says in one line why it does not work (`flowevolve.core.assessment.Assessment`); None if it does.
    """

    candidate: Candidate
    failure: str | None
