"""A row of a table, and the units and values of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar

from flowevolve._util.json_types import JSON

Seconds = Annotated[float, "seconds"]
Tokens = Annotated[int, "tokens"]
Dollars = Annotated[float, "dollars"]
Characters = Annotated[int, "characters"]
Value = bool | int | float | str | None | tuple[str, ...] | tuple[int, ...] | tuple[float, ...] | Mapping[str, JSON]
"""What a column can hold. A tuple is an array in JavaScript."""


@dataclass(frozen=True)
class Row:
    """The base of all rows."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, table: str = "", key: tuple[str, ...] = ()) -> None:
        cls.table, cls.key = table, key

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The names of the columns, in their order."""
        return tuple(each.name for each in fields(cls))

    def values(self) -> tuple[Value, ...]:
        """The values of all columns, in their order."""
        return tuple(vars(self).values())

    def identity(self) -> tuple[Value, ...]:
        """The values of the key, which no two rows of a table share."""
        mine = vars(self)
        return tuple(mine[name] for name in self.key)
