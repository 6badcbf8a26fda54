"""The names under which the journal keeps the types of payloads and of the objects inside them.

The journal names a kind, not a module or a class, and creates only objects of kinds that are registered here. So code
can be moved while a run waits to be resumed, and reading a journal that somebody has tampered with runs none of its
code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, overload

from flowevolve._util.errors import EngineError

T = TypeVar("T")

BUILT_IN = frozenset({"tuple", "list", "dict", "view", "set", "frozenset", "bytes", "artifact", "again"})
"""The names that the journal uses for artifacts and for the types of Python."""


class NotKeptError(Exception):
    """An object can't be kept in the journal, or can't be loaded here. The run can do without it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of payload, and how the journal stores it.

    ``take_apart`` returns the parts of an object by name: plain data, or objects of registered kinds. ``put_together``
    takes them as keyword arguments and makes the object again. An ``opaque`` kind also covers subclasses, and its
    objects are written once even if they occur several times in a payload.
    """

    name: str
    type: type
    take_apart: Callable[[Any], Mapping[str, object]]
    put_together: Callable[..., object]
    opaque: bool = False


_of_name: dict[str, Kind] = {}
_of_type: dict[type, Kind] = {}


@overload
def payload(of: type[T]) -> type[T]: ...


@overload
def payload(of: str) -> Callable[[type[T]], type[T]]: ...


def payload(of: type[T] | str) -> type[T] | Callable[[type[T]], type[T]]:
    """Have the journal keep a dataclass that travels as a payload, or inside one. Write it above ``@dataclass``.

    The journal knows the dataclass by its class name, or by a name of your own, ``@payload("my_search.Selected")``.
    That name has to stay the same as long as runs are to be resumed. The class may be moved and, if you gave it a name
    of your own, renamed. A field may be added if it has a default.

    Raises:
        EngineError: if it is no dataclass, or another one has the name.
    """
    if isinstance(of, str):
        return lambda each: _register_dataclass(each, of)
    return _register_dataclass(of, of.__name__)


def _register_dataclass(each: type[T], name: str) -> type[T]:
    if not is_dataclass(each):
        raise EngineError(f"{_full_name(each)} is no dataclass; write @payload above @dataclass(frozen=True)")
    names = tuple(field.name for field in fields(each) if field.init)

    def take_apart(value: T) -> dict[str, object]:
        return {name: getattr(value, name) for name in names}

    register(Kind(name, each, take_apart, each))
    return each


def register(kind: Kind) -> None:
    """Have the journal keep objects of a kind. A class that is defined a second time replaces the first definition.

    Raises:
        EngineError: if the name is taken.
    """
    known = _of_name.get(kind.name)
    if kind.name in BUILT_IN or (known is not None and _full_name(known.type) != _full_name(kind.type)):
        whose = "what the journal itself brings" if known is None else _full_name(known.type)
        own = f"{kind.type.__module__.rpartition('.')[2]}.{kind.type.__name__}"
        raise EngineError(
            f"{_full_name(kind.type)}: as a payload the name {kind.name!r} is taken by {whose}; give it one of its "
            f'own: @payload("{own}")'
        )
    _of_name[kind.name] = _of_type[kind.type] = kind


def kind_of(given: type) -> Kind | None:
    """The kind under which the journal keeps objects of a type; None if it can't keep them."""
    known = _of_type.get(given)
    if known is not None:
        return known
    return next((kind for base in given.__mro__ if (kind := _of_type.get(base)) is not None and kind.opaque), None)


def kind_named(name: str) -> Kind | None:
    """The kind of this name; None if there is none, or if the package that registers it was not imported."""
    return _of_name.get(name)


def registered() -> tuple[Kind, ...]:
    """All kinds that are known so far."""
    return tuple(_of_name.values())


def _full_name(given: type) -> str:
    return f"{given.__module__}.{given.__qualname__}"
