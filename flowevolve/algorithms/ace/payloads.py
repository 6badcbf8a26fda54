"""What flows between ACE's stages: frozen, plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from flowevolve.algorithms.ace.playbook import Bullet, Counts, Operation
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate
from flowevolve.core.task import Rollout


@payload("ace.Sample")
@dataclass(frozen=True, slots=True)
class Sample:
    """A training example to learn from, by its id."""

    example_id: str


@payload("ace.Answered")
@dataclass(frozen=True, slots=True)
class Answered:
    """A sample's first answer, and the bullets it worked with: those it cites, or all it saw."""

    example_id: str
    rollout: Rollout
    used: tuple[Bullet, ...]


@payload("ace.Lesson")
@dataclass(frozen=True, slots=True)
class Lesson:
    """What one sample taught. ``reads`` maps the ids of the bullets it had read to their digests, and ``diagnosis``
    says what was wrong with its first answer.
    """

    example_id: Annotated[str, Field(validation_alias="example", serialization_alias="example")]
    texts: tuple[str, ...]
    reads: Mapping[str, str]
    diagnosis: str = ""


@payload("ace.Learned")
@dataclass(frozen=True, slots=True)
class Learned:
    """A finished sample: its lesson, what it adds to the counters, and whether its first and its last answer were
    right.
    """

    lesson: Lesson
    counts: Counts
    right_at_first: bool
    right: bool


@payload("ace.Curation")
@dataclass(frozen=True, slots=True)
class Curation:
    """Lessons for the curator. With ``validate`` the playbook is validated once they are in it; with ``last`` this is
    the run's last curation.
    """

    lessons: tuple[Lesson, ...]
    validate: bool = False
    last: bool = False


@payload("ace.Refinement")
@dataclass(frozen=True, slots=True)
class Refinement:
    """A request to merge bullets that say the same and, with ``validate``, to validate the playbook then."""

    validate: bool = False


@payload("ace.Edit")
@dataclass(frozen=True, slots=True)
class Edit:
    """Changes of the playbook, made from the item's version. ``sources`` are the ids of the examples they were learnt
    from, and ``reads`` holds the digests of the bullets that these had read, by bullet id.
    """

    operations: tuple[Operation, ...]
    sources: tuple[str, ...] = ()
    reads: Mapping[str, str] = field(default_factory=dict)
    counts: Counts = field(default_factory=dict)
    validate: bool = False
    last: bool = False


@payload("ace.Trial")
@dataclass(frozen=True, slots=True)
class Trial:
    """A version of the playbook to be scored on these examples. ``window`` numbers the window in online mode."""

    candidate: Candidate
    example_ids: tuple[str, ...]
    split: Literal["train", "val"] = "val"
    window: int | None = None


@payload("ace.Tried")
@dataclass(frozen=True, slots=True)
class Tried:
    """A version of the playbook with its scores."""

    candidate: Candidate
    window: int | None = None
