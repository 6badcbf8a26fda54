"""Plain data with one JSON form: results of stages, notes to archives, attributes of candidates.

Its class is the only place where the JSON is written and read, so that nobody else needs the keys.
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
    """Frozen fields of plain data. Fields that were never set are left out of the JSON, and it may have other keys."""

    model_config = ConfigDict(frozen=True, defer_build=True, populate_by_name=True)

    def to_json(self) -> dict[str, JSON]:
        """The fields in their order, as `from_json` takes them."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> Self:
        """The value that `to_json` made this of.

        Raises:
            pydantic.ValidationError: if the data does not have these fields.
        """
        return cls.model_validate(data)


class Record(PlainData):
    """Something that was settled or happened, as an event of an algorithm's own or a note in its pool has it."""

    kind: ClassVar[str]
    """The kind of the event, or of the note: ``class Judged(Record, kind="candidate.judged")``."""

    def __init_subclass__(cls, kind: str | None = None, **options: Unpack[ConfigDict]) -> None:
        super().__init_subclass__(**options)
        if kind is not None:
            cls.kind = kind

    def note(self, pool: str = DEFAULT_POOL) -> Note:
        """The change of a pool that tells its archives of this."""
        return Note(self.kind, self.to_json(), pool)


class Attributes(PlainData):
    """What is known of a candidate, kept among its attributes."""

    @classmethod
    def of(cls, candidate: Candidate) -> Self:
        """What is known of this candidate: defaults where nothing was noted."""
        return cls.from_json(candidate.attributes)

    def on(self, candidate: Candidate) -> Candidate:
        """The candidate with this noted."""
        return replace(candidate, attributes={**candidate.attributes, **self.to_json()})

    def annotation(self, candidate_id: str) -> Annotate:
        """The change that notes this on a candidate that is in the pool."""
        return Annotate(candidate_id, self.to_json())
