"""Immutable value objects that are created many times for every LLM call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make a dataclass with slots whose objects must not be changed, which only type checkers enforce.

    ``dataclass(frozen=True)`` also enforces it at run time. Then creating an object takes about six times as long,
    because its fields can only be set through a function of ``object``. Don't use this for types that users may derive
    from, because a frozen dataclass can't inherit from one of these.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
