"""Ids of items: an item's id is its path in its flow, and whatever belongs to the item is named after it.

A flow's ticket has the flow's number as its id (``17``). The items that a stage makes from an item get that item's id
and a number (``17.0``, ``17.1``), and an item that is sent to repair gets an ``r`` (``17.0.r``). No other module takes
ids apart.
"""

from __future__ import annotations

from typing import NamedTuple, NewType, Self

ItemId = NewType("ItemId", str)
"""A path in a flow. At run time it is a plain string, so it costs nothing in JSON and as a key."""


OUTSIDE = ItemId("-1")
"""Used in place of an item's id where somebody from outside has changed the pool: no flow has this number."""


def ticket_id(flow: int) -> ItemId:
    """The id of the ticket that starts a flow."""
    return ItemId(str(flow))


def child_id(item: ItemId, number: int) -> ItemId:
    """The id of the item that is made from ``item`` after ``number`` others."""
    return ItemId(f"{item}.{number}")


def repair_id(item: ItemId) -> ItemId:
    """The id that an item has while it is repaired."""
    return ItemId(f"{item}.r")


def parent_and_number(item: ItemId) -> tuple[ItemId, int | None]:
    """The id of the item that an item was made from, and its number; None as the number of an item sent to repair."""
    parent, _, number = item.rpartition(".")
    return ItemId(parent), None if number == "r" else int(number)


def flow_of(item: str) -> int:
    """The number of the flow that an item, or a part of the work on an item, belongs to.

    Raises:
        ValueError: if this is not the id of an item.
    """
    return int(item.partition("/")[0].partition(".")[0])


def candidate_name(item: ItemId) -> str:
    """A short name for a candidate that is proposed in the work on an item: the item's path without trailing ``.0``."""
    path = item.replace(".r", "")
    while path.endswith(".0"):
        path = path[:-2]
    return f"c{path}"


class WorkPart(NamedTuple):
    """A part of the work on an item, such as one example's; with ``part`` None, the work as a whole.

    As text it is ``item/part``, or the item's id alone.
    """

    item: ItemId
    part: str | None = None

    def __str__(self) -> str:
        return self.item if self.part is None else f"{self.item}/{self.part}"

    @classmethod
    def read(cls, text: str) -> Self:
        """The part that this text names."""
        item, slash, part = text.partition("/")
        return cls(ItemId(item), part if slash else None)
