"""The base of all events, and how an event is written to JSON and read from it.

The JSON form of an event is its fields in their order, without those that have their default value. Reading checks the
fields against their types.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from types import NoneType, UnionType
from typing import Annotated, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, GetPydanticSchema, TypeAdapter, ValidationError
from pydantic_core import core_schema

from flowevolve._util.errors import EngineError
from flowevolve._util.json_types import JSON
from flowevolve._util.registry import describe_fault
from flowevolve.core.budget import Cost
from flowevolve.core.item_ids import ItemId

Text = Annotated[str, GetPydanticSchema(lambda source, handler: core_schema.is_instance_schema(str))]
"""A text that somebody else wrote, which may hold lone surrogates."""
Number = int | float
"""A number that is read as it was written: an integer stays an integer."""
Table = Annotated[Mapping[str, JSON], GetPydanticSchema(lambda source, handler: core_schema.dict_schema())]
"""Plain data that somebody else wrote, by name."""

_ATOMS = frozenset({str, int, float, bool, NoneType, ItemId})


@dataclass(frozen=True)
class Plain:
    """A base of frozen dataclasses that are plain data."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def to_json(self) -> dict[str, JSON]:
        """The fields by name, as values that JSON can hold."""
        made = vars(self).copy()
        compound, defaults = _LAYOUTS.get(type(self)) or _layout(type(self))
        for name in compound:
            made[name] = _plain(made[name])
        for name, default in defaults:
            if made[name] == default:
                del made[name]
        return made


def _plain(value: object) -> JSON:
    if isinstance(value, tuple):
        return [each if type(each) is str else _plain(each) for each in value]
    if isinstance(value, Plain | Cost):
        return value.to_json()
    return dict(value) if isinstance(value, Mapping) else None


def _layout(plain: type[Plain]) -> _Layout:
    hints = get_type_hints(plain)
    compound = [each.name for each in fields(plain) if not _is_atom(hints[each.name])]
    defaults = [(each.name, each.default) for each in fields(plain) if each.default is not MISSING]
    return _LAYOUTS.setdefault(plain, (compound, defaults))


_Layout = tuple[Sequence[str], Sequence[tuple[str, object]]]
"""The names of the fields that hold more than one value, and the defaults of the fields that have one."""
_LAYOUTS: dict[type[Plain], _Layout] = {}


def _is_atom(hint: object) -> bool:
    origin = get_origin(hint)
    return hint in _ATOMS or origin is Literal or (origin in (Union, UnionType) and all(map(_is_atom, get_args(hint))))


class EventBody(Plain):
    """What an event says, apart from when. Kinds of events are subclasses that give their ``kind``."""

    kind: str

    def __init_subclass__(cls, kind: str = "") -> None:
        if kind:
            cls.kind = kind
            KINDS[kind] = cls


KINDS: dict[str, type[EventBody]] = {}
"""The classes of events by kind."""


def read_body(kind: str, data: Mapping[str, JSON]) -> EventBody:
    """Read the body of an event from its JSON form.

    Raises:
        ValueError: if it does not have the fields of its kind.
    """
    if kind not in KINDS:
        return OwnEvent(kind, data)
    body = _read(KINDS[kind], data, kind)
    assert isinstance(body, EventBody)
    return body


def check_readable(plain: Plain, what: str) -> None:
    """Check that plain data from an algorithm can be read again, before it is written to the journal.

    Raises:
        EngineError: if it can't. ``what`` says whose fields these are.
    """
    try:
        _read(type(plain), json.loads(json.dumps(plain.to_json())), what)
    except ValueError as error:
        raise EngineError(f"{error}; the journal could not be read again") from error
    except TypeError as error:
        raise EngineError(f"{what}: {error}; the journal holds nothing but plain data") from error


def _read(plain: type[Plain], data: Mapping[str, JSON], what: str) -> Plain:
    """Raises: ValueError if the data does not have the fields of this class."""
    try:
        return _reader(plain).validate_python(data)
    except ValidationError as error:
        wrong = (describe_fault(each, ".".join(map(str, each["loc"]))) for each in error.errors())
        raise ValueError(f"{what}: {'; '.join(wrong)}") from error


def _reader(plain: type[Plain]) -> TypeAdapter[Plain]:
    return _READERS.get(plain) or _READERS.setdefault(plain, TypeAdapter(plain))


_READERS: dict[type[Plain], TypeAdapter[Plain]] = {}


@dataclass(frozen=True)
class OwnEvent(EventBody):
    """An event of a kind that an algorithm, or one of its stages, defines for itself."""

    kind: str
    data: Mapping[str, JSON]

    @property
    def item(self) -> ItemId:
        """The item that the event is about; empty if it is about none."""
        return ItemId(str(self.data.get("item", "")))

    @property
    def key(self) -> str | None:
        """Distinguishes the event from others of the same kind and item; None if there is no need."""
        key = self.data.get("key")
        return None if key is None else str(key)

    def to_json(self) -> dict[str, JSON]:
        return dict(self.data)
