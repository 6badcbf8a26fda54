"""Changes of the pool in the form that the event log has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from flowevolve._util.errors import EngineError
from flowevolve.core.event_body import Number, Plain, Table, Text
from flowevolve.core.pool import Add, Annotate, Candidate, Change, Move, Note, Vetoed


@dataclass(frozen=True)
class LoggedAdd(Plain):
    """`flowevolve.core.pool.Add`. With the event of the proposal, this is enough to apply the change again."""

    add: str
    pool: str
    status: Literal["speculative", "confirmed", "rejected"]
    operator: str
    scores: Mapping[Text, Number]
    attributes: Table


@dataclass(frozen=True)
class LoggedMove(Plain):
    """`flowevolve.core.pool.Move`."""

    move: str
    pool: str
    status: Literal["confirmed", "revoked"]
    scores: Mapping[Text, Number] | None


@dataclass(frozen=True)
class LoggedAnnotate(Plain):
    """`flowevolve.core.pool.Annotate`."""

    annotate: str
    pool: str
    attributes: Table
    scores: Mapping[Text, Number] | None


@dataclass(frozen=True)
class LoggedNote(Plain):
    """`flowevolve.core.pool.Note`."""

    note: str
    pool: str
    data: Table


@dataclass(frozen=True)
class LoggedVeto(Plain):
    """`flowevolve.core.pool.Vetoed`."""

    veto: str
    pool: str
    stands: bool


LoggedChange = LoggedAdd | LoggedMove | LoggedAnnotate | LoggedNote | LoggedVeto


def logged_change(change: Change) -> LoggedChange:
    """Convert a change of the pool to the form that the event log has.

    Raises:
        EngineError: if it is not a change.
    """
    match change:
        case Add(candidate, status, pool):
            return LoggedAdd(candidate.id, pool, status, candidate.operator, candidate.scores, candidate.attributes)
        case Move(name, moved, scores, pool):
            return LoggedMove(name, pool, moved, scores)
        case Annotate(name, attributes, scores, pool):
            return LoggedAnnotate(name, pool, attributes, scores)
        case Note(kind, data, pool):
            return LoggedNote(kind, pool, data)
        case Vetoed(name, stands, pool):
            return LoggedVeto(name, pool, stands)
        case _:
            raise EngineError(f"commit: a {type(change).__name__} is no change; give Add, Move, Annotate or Note")


def read_change(logged: LoggedChange, lookup: Callable[[str], Candidate]) -> Change:
    """Convert a logged change back. ``lookup`` gives a candidate, as it was proposed, by its id."""
    match logged:
        case LoggedAdd(name, pool, status, _, scores, attributes):
            return Add(replace(lookup(name), attributes=attributes).scored(scores), status, pool)
        case LoggedMove(name, pool, moved, new_scores):
            return Move(name, moved, new_scores, pool)
        case LoggedAnnotate(name, pool, attributes, new_scores):
            return Annotate(name, attributes, new_scores, pool)
        case LoggedNote(kind, pool, data):
            return Note(kind, data, pool)
        case LoggedVeto(name, pool, stands):
            return Vetoed(name, stands, pool)
