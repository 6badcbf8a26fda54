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
    """A training example to learn from (id)."""

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
    """What one sample taught, and what it had read: digests by bullet id. ``diagnosis``: what was wrong at first."""

    example_id: Annotated[str, Field(validation_alias="example", serialization_alias="example")]
    texts: tuple[str, ...]
    reads: Mapping[str, str]
    diagnosis: str = ""


@payload("ace.Learned")
@dataclass(frozen=True, slots=True)
class Learned:
    """A sample done: its lesson, what it adds to counters, whether the first and the last answer were right."""

    lesson: Lesson
    counts: Counts
    right_at_first: bool
    right: bool


@payload("ace.Curation")
@dataclass(frozen=True, slots=True)
class Curation:
    """Lessons for the curator. ``validate``: the playbook is validated with them in it; ``last``: the run ends with
    it.
    """

    lessons: tuple[Lesson, ...]
    validate: bool = False
    last: bool = False


@payload("ace.Refinement")
@dataclass(frozen=True, slots=True)
class Refinement:
    """Bullets that say the same are to be merged, and the playbook then validated or not."""

    validate: bool = False


@payload("ace.Edit")
@dataclass(frozen=True, slots=True)
class Edit:
    """Changes of the playbook, made from the item's version. ``sources`` are the examples they were learnt from, and
    ``reads`` what those had read.
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
