"""What is said of keys that a configuration must not have."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import get_args

from pydantic import BaseModel, ValidationError

from flowevolve._util.registry import did_you_mean


def misplaced_key(error: ValidationError) -> str | None:
    """The error message if an API key may have been written into the configuration; it never shows the value."""
    kept = (
        "Keys don't belong in a configuration, which is kept with every run; give the name of an environment variable "
        "(in capitals) in api_key_env, or a file in api_key_file"
    )
    for detail in error.errors():
        place = ".".join(map(str, detail["loc"]))
        name = place.rpartition(".")[2]
        if name == "api_key_file" and detail["type"] == "path_not_file":
            return f"{place}: there is no such file; name the file that holds the key"
        if name.startswith(("api_key", "apikey")):
            return f"{place}: {kept[:1].lower()}{kept[1:]}"
        if detail["type"] == "secret":
            return f"{place}: {detail['msg']}. {kept}"
    return None


def unknown_key(error: ValidationError, config: type[BaseModel]) -> str | None:
    """The error message if a configuration of this type has a key that there isn't, with the nearest known one."""
    for detail in error.errors():
        if detail["type"] == "extra_forbidden":
            *section, key = map(str, detail["loc"])
            known = _known_keys(config, section)
            return f"{'.'.join([*section, key])}: unknown key; {did_you_mean(key, known)}"
    return None


def _known_keys(config: type[BaseModel], section: Sequence[str]) -> list[str]:
    kind: object = config
    for name in section:
        kind = _inside(kind, name)
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []


def _inside(kind: object, name: str) -> object:
    """The type of the value at a key of a section or of a table of sections, or at an index of a list of them."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(name)
        return None if field is None else _unless_left_out(field.annotation)
    return next((part for part in reversed(get_args(kind)) if part is not Ellipsis), None)


def _unless_left_out(kind: object) -> object:
    """The type of a value that may be left out, without None."""
    parts = get_args(kind)
    return next(part for part in parts if part is not NoneType) if NoneType in parts else kind
