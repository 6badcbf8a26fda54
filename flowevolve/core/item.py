"""What travels between stages. Everything here is frozen: an item that changes is a new item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, runtime_checkable

from typing_extensions import TypeIs

from flowevolve._util.errors import EngineError
from flowevolve._util.values import value
from flowevolve.core.event_kinds import Outcome
from flowevolve.core.item_ids import ItemId
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate

P_co = TypeVar("P_co", covariant=True)
T = TypeVar("T")

SENT_TO_REPAIR: tuple[Outcome, str] = ("consumed", "sent to repair")
"""How the work on an item ends if the item is sent to repair."""
INJECTION = "inject"
"""The name of both trigger and stage in a flow that a candidate from outside starts."""


@payload
@value
class Item(Generic[P_co]):
    """A payload on its way from stage to stage.

    ``id`` is the item's path in its flow (``17``, ``17.0``, …), ``version`` the pool version it was made from,
    ``derives`` the ids of the candidates it came from, ``created`` the loop's time in seconds, and ``repairs`` how
    often it was repaired.
    """

    id: ItemId
    flow: int
    payload: P_co
    version: int
    derives: tuple[str, ...]
    created: float
    repairs: int = 0

    def expect(self, payload_type: type[T]) -> T:
        """The payload, which must be of this type.

        Raises:
            EngineError: if it is not: a stage was joined to one that emits something else.
        """
        if not isinstance(self.payload, payload_type):
            raise EngineError(
                f"item {self.id}: expected a {payload_type.__name__}, got a {type(self.payload).__name__}; "
                "check which stages the graph joins"
            )
        return self.payload


@payload
@dataclass(frozen=True, slots=True)
class Ticket:
    """The payload that starts a flow. ``trigger`` names the trigger that fired, if one did. ``ordinal`` numbers the
    tickets of that trigger, or the ordinary ones, from 0.
    """

    trigger: str | None = None
    ordinal: int = 0


@payload
@dataclass(frozen=True, slots=True)
class Stale(Generic[P_co]):
    """The payload of an item sent to repair: the item as it was taken, and the stage it goes back to."""

    item: Item[P_co]
    back_to: str


@payload
@dataclass(frozen=True, slots=True)
class Gathered(Generic[P_co]):
    """The payload of a gathering stage: the items that it gets together, oldest first."""

    items: tuple[Item[P_co], ...]


@payload
@dataclass(frozen=True, slots=True)
class Released:
    """A candidate with its scores on the speculative prefix, while the rest is still being run.

    An item with it is not counted among those that a stage hands on, because the result will be. The field is called
    ``partial``, not ``candidate``, because the candidate's fate does not depend on this item.
    """

    partial: Candidate


@runtime_checkable
class CarriesCandidate(Protocol):
    """A payload about one candidate. If an item about it was discarded, the candidate ends with its last live item."""

    @property
    def candidate(self) -> Candidate: ...


@runtime_checkable
class CarriesCandidates(Protocol):
    """A payload about several candidates (a program and the prompt it was made with)."""

    @property
    def carried(self) -> Sequence[Candidate]: ...


def carried(item: Item[object]) -> tuple[Candidate, ...]:
    """The candidates an item is about; none for most payloads."""
    payload = item.payload.item.payload if isinstance(item.payload, Stale) else item.payload
    if _carries_candidates(payload):
        return tuple(payload.carried)
    return (payload.candidate,) if _carries_candidate(payload) else ()


def _carries_candidates(payload: object) -> TypeIs[CarriesCandidates]:
    """As `isinstance`, which takes ten times as long for a protocol; this is asked several times for each item."""
    return hasattr(payload, "carried")


def _carries_candidate(payload: object) -> TypeIs[CarriesCandidate]:
    """As `_carries_candidates`, for one candidate."""
    return hasattr(payload, "candidate")


def gathered(items: Sequence[Item[object]]) -> Item[object]:
    """Several items as one: with the id and flow of the first, the oldest version, and all that they derive from."""
    derives = tuple(dict.fromkeys(candidate for item in items for candidate in item.derives))
    oldest = min(item.version for item in items)
    return replace(items[0], payload=Gathered(tuple(items)), derives=derives, version=oldest)
