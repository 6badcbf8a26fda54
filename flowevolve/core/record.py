"""Plain data with one JSON form: results of stages, notes to archives, attributes of candidates.

Only the data's class writes and reads the JSON, so that no other code needs to know the keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict
from typing_extensions import Unpack

from flowevolve._util.json_types import JSON
from flowevolve.core.pool import DEFAULT_POOL, Annotate, Candidate, Note


class PlainData(BaseModel):
    """Frozen fields of plain data. The JSON leaves out fields that were never set, and it may have further keys."""

    model_config = ConfigDict(frozen=True, defer_build=True, populate_by_name=True)

    def to_json(self) -> dict[str, JSON]:
        """The fields in their order, in the form that `from_json` takes."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> Self:
        """Make the value again from what `to_json` returned.

        Raises:
            pydantic.ValidationError: if the data does not have these fields.
        """
        return cls.model_validate(data)


class Record(PlainData):
    """Something that was decided or that happened, in the form of an algorithm's own event or a note in its pool."""

    kind: ClassVar[str]
    """The kind of the event, or of the note: ``class Judged(Record, kind="candidate.judged")``."""

    def __init_subclass__(cls, kind: str | None = None, **options: Unpack[ConfigDict]) -> None:
        super().__init_subclass__(**options)
        if kind is not None:
            cls.kind = kind

    def note(self, pool: str = DEFAULT_POOL) -> Note:
        """The pool change that reports this to the pool's archives."""
        return Note(self.kind, self.to_json(), pool)


class Attributes(PlainData):
    """Data about a candidate, kept among its attributes."""

    @classmethod
    def of(cls, candidate: Candidate) -> Self:
        """The data of this candidate, with defaults where nothing was noted."""
        return cls.from_json(candidate.attributes)

    def on(self, candidate: Candidate) -> Candidate:
        """The candidate with this data among its attributes."""
        return replace(candidate, attributes={**candidate.attributes, **self.to_json()})

    def annotation(self, candidate_id: str) -> Annotate:
        """The pool change that adds this data to a candidate that is in the pool."""
        return Annotate(candidate_id, self.to_json())
