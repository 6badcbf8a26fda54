"""Immutable value objects that are made many times for every LLM call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """A dataclass with slots that nothing may change once it is made, which type checkers see to.

    ``dataclass(frozen=True)`` also sees to it at run time. That makes each object cost about six times as much, as its
    fields can only be set through a function of ``object``. It is not for types that users may derive theirs from, as a
    frozen dataclass can't inherit from one of these.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
