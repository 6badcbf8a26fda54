"""What a run over an adapter decides and notes: the events that a resumed run reads back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import GetPydanticSchema
from pydantic_core import core_schema

from flowevolve.core.event_body import Number, Table
from flowevolve.core.record import PlainData, Record

Texts = Annotated[Mapping[str, str], GetPydanticSchema(lambda source, handler: core_schema.dict_schema())]
"""Texts by component, unchecked, as the user's own code returned them: an artifact refuses whatever is not text."""


class Rewrite(PlainData):
    """A candidate to rewrite, by its id, and the training examples to learn from."""

    parent: str
    batch: tuple[str, ...]


class Merge(PlainData):
    """Candidates to merge, by their ids, the merged texts, and the validation examples to test them on."""

    parents: tuple[str, ...]
    texts: Mapping[str, str]
    batch: tuple[str, ...]


class Iteration(Record, kind="gepa.selected"):
    """What an iteration works on: a merge, or rewrites."""

    merge: Merge | None
    tasks: tuple[Rewrite, ...]
    undrawable: str | None = None
    """Why gepa could not draw a merge that was due."""
    failed: str | None = None
    """How a strategy failed, so that there is nothing to work on."""
    iteration: int
    version: int


class ChosenComponents(Record, kind="gepa.components"):
    """The components of a candidate to rewrite, and its new position in the round robin over components."""

    candidate: str
    components: tuple[str, ...]
    cursor: int


class NewTexts(Record, kind="gepa.proposed"):
    """The texts that a proposer function has written."""

    texts: Texts


class Screened(Record, kind="candidate.screened"):
    """How a proposal did on its minibatch."""

    candidate: str
    accepted: bool
    scores: tuple[Number, ...]


class Validating(Record, kind="gepa.validating"):
    """The number of metric calls at which the evaluation of a candidate began."""

    candidate: str
    calls: int


class Validated(Validating, kind="gepa.validated"):
    """The same after the evaluation, with the scores of the objectives, by validation example."""

    objectives: Mapping[str, Mapping[str, float]] = {}


class AdapterState(Record, kind="gepa.adapter_state"):
    """The adapter's own state, as it reports it."""

    state: Table
