"""What is settled and noted in a run over an adapter: the events that a run which goes on reads back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import GetPydanticSchema
from pydantic_core import core_schema

from flowevolve.core.event_body import Number, Table
from flowevolve.core.record import PlainData, Record

Texts = Annotated[Mapping[str, str], GetPydanticSchema(lambda source, handler: core_schema.dict_schema())]
"""Texts by component, as the user's own code gave them: an artifact refuses what is no text."""


class Rewrite(PlainData):
    """A candidate to write anew, by its id, and the training examples to do it by."""

    parent: str
    batch: tuple[str, ...]


class Merge(PlainData):
    """Candidates to join, by their ids, what they become together, and the validation examples to test it on."""

    parents: tuple[str, ...]
    texts: Mapping[str, str]
    batch: tuple[str, ...]


class Iteration(Record, kind="gepa.selected"):
    """What an iteration works on: a merge, or rewrites."""

    merge: Merge | None
    tasks: tuple[Rewrite, ...]
    undrawable: str | None = None
    """Why a merge that is due could not be drawn."""
    failed: str | None = None
    """What went wrong in a strategy, so that there is nothing to work on."""
    iteration: int
    version: int


class ChosenComponents(Record, kind="gepa.components"):
    """The components of a candidate to write anew, and its place in the round of components from now on."""

    candidate: str
    components: tuple[str, ...]
    cursor: int


class NewTexts(Record, kind="gepa.proposed"):
    """What a proposer that is a function has written."""

    texts: Texts


class Screened(Record, kind="candidate.screened"):
    """How a proposal did on its minibatch."""

    candidate: str
    accepted: bool
    scores: tuple[Number, ...]


class Validating(Record, kind="gepa.validating"):
    """At how many metric calls the evaluation of a candidate began."""

    candidate: str
    calls: int


class Validated(Validating, kind="gepa.validated"):
    """And what came of it beside the scores: those of the objectives, by validation example."""

    objectives: Mapping[str, Mapping[str, float]] = {}


class AdapterState(Record, kind="gepa.adapter_state"):
    """What the adapter says its own state is."""

    state: Table
