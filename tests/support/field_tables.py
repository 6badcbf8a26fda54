"""What a page of the reference says about the fields of something, and how it has to name their types.

In a table of fields, the name of what has them stands in bold in a row of its own, and its fields in the rows below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, NewType, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import TypeAliasType

from flowevolve.core.budget import Cost
from flowevolve.core.event_body import Plain

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
OPTIONAL = ", optional"
ATOMS: Mapping[object, str] = {str: "text", bool: "boolean", int: "integer", float: "number", Cost: "cost"}

_OF_ONE = re.compile(r"^\| \*\*`([\w.]+)`\*\* \| (?:\*(stage)\*)? ?\| ")
_FIELD = re.compile(r"^\| `([\w.]+)` \| ([^|]+) \| ")


@dataclass(frozen=True)
class Entry:
    """Something that a page describes: its name, the types of its fields, and whether it is marked as a stage's."""

    name: str
    types: Mapping[str, str]
    of_stage: bool = False


def section(page: str, heading: str | None = None) -> str:
    """The text of a page, or of the part of it below a heading and above the next of any level."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    if heading is None:
        return text
    parts = re.split(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]


def entries(text: str) -> list[Entry]:
    """What the tables in a text describe, in their order."""
    found: list[Entry] = []
    types: dict[str, str] = {}
    inside = False
    for line in text.splitlines():
        if named := _OF_ONE.match(line):
            inside, types = True, {}
            found.append(Entry(named[1], types, named[2] is not None))
        elif inside and (field := _FIELD.match(line)):
            assert field[1] not in types, f"{found[-1].name}: {field[1]} twice"
            types[field[1]] = field[2]
        else:
            inside = False
    return found


def rows(text: str) -> dict[str, str]:
    """The types of the fields in a table that describes one thing."""
    return {field[1]: field[2] for line in text.splitlines() if (field := _FIELD.match(line))}


def types_of(each: type[Plain | BaseModel]) -> dict[str, str]:
    """The fields of a class as JSON has them, with the types that a page has to give."""
    if issubclass(each, BaseModel):
        return {
            field.serialization_alias or name: spelled(field.annotation) + ("" if field.is_required() else OPTIONAL)
            for name, field in each.model_fields.items()
        }
    assert is_dataclass(each)
    hints = get_type_hints(each)
    return {field.name: _with_default(spelled(hints[field.name]), field.default) for field in fields(each)}


def _with_default(spelling: str, default: object) -> str:
    """The type of a field that JSON lacks where it has its default."""
    if default is MISSING:
        return spelling
    return (spelling.removesuffix(" or null") if default is None else spelling) + OPTIONAL


def spelled(hint: object) -> str:
    """How a page names the JSON form of values of this type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, NewType):
        return spelled(hint.__supertype__)
    if hint in ATOMS:
        return ATOMS[hint]
    if origin is Literal:
        return "text"
    if origin in (Union, UnionType):
        return _any_of([spelled(each) for each in arguments if each is not NoneType]) + (
            " or null" if NoneType in arguments else ""
        )
    if origin in (tuple, list):
        return _list_of([each for each in arguments if each is not ...])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        held = spelled(arguments[1])
        return "object" if isinstance(arguments[1], TypeAliasType) else f"{_plural(held)} by name"
    if isinstance(hint, type) and issubclass(hint, tuple):
        return _list_of(list(get_type_hints(hint).values()))
    assert isinstance(hint, TypeAliasType) or (
        isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, BaseModel))
    )
    return "object"


def _any_of(spellings: Sequence[str]) -> str:
    kinds = set(spellings)
    if kinds == {"integer", "number"}:
        return "number"
    (only,) = kinds
    return only


def _list_of(parts: Sequence[object]) -> str:
    held = {spelled(each) for each in parts}
    return f"list of {_plural(held.pop())}" if len(held) == 1 else "list"


def _plural(spelling: str) -> str:
    first, space, rest = spelling.partition(" ")
    return spelling if first.endswith("s") else f"{first}s{space}{rest}"


def fits(value: object, spelling: str) -> bool:
    """Whether a value read from JSON is of a type that is spelled like this."""
    spelling = spelling.removesuffix(OPTIONAL)
    if spelling.endswith(" or null"):
        return value is None or fits(value, spelling.removesuffix(" or null"))
    if spelling.endswith(" by name"):
        return isinstance(value, Mapping) and all(
            fits(each, spelling.removesuffix(" by name")) for each in value.values()
        )
    if spelling.startswith(("list of ", "lists of ")):
        return isinstance(value, list) and all(fits(each, spelling.partition(" of ")[2]) for each in value)
    match spelling.removesuffix("s"):
        case "text":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "list":
            return isinstance(value, list)
        case "object" | "cost":
            return isinstance(value, Mapping)
    raise AssertionError(f"{spelling!r} is not the name of a type")
