"""Things that can be named in a config: what ships, what installed packages add, and anything importable.

A name is looked up among the built-in ones, then among the entry points of the registry's group, and, if it has the
form ``package.module:attribute``, imported.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from flowevolve.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    """Factories by name. ``kind`` is the word used in messages, ``group`` the entry-point group for plug-ins."""

    kind: str
    group: str
    builtin: Mapping[str, Callable[..., T]]

    def names(self) -> list[str]:
        """Every name known without importing anything."""
        return sorted({*self.builtin, *(point.name for point in entry_points(group=self.group))})

    def find(self, name: str, where: str) -> Callable[..., T]:
        """The factory of this name. ``where`` is the config key that named it, for messages.

        Raises:
            InputError: if there is none, or importing it failed.
        """
        if name in self.builtin:
            return self.builtin[name]
        for point in entry_points(group=self.group, name=name):
            factory: Callable[..., T] = point.load()
            return factory
        if ":" in name:
            return self._imported(name, where)
        raise InputError(f"{where}: unknown {self.kind} {name!r}; {did_you_mean(name, self.names())}")

    def make(self, name: str, settings: Mapping[str, object], where: str) -> T:
        """Call the factory with the settings as keywords, checked against its signature.

        Raises:
            InputError: naming the setting that is unknown, missing or of the wrong type.
        """
        factory = self.find(name, where)
        known = list(inspect.signature(factory).parameters)
        for key in settings:
            if key not in known:
                raise InputError(f"{where}.{key}: {self.kind} {name!r} has no such setting; {did_you_mean(key, known)}")
        try:
            checked = _settings_model(factory)(**settings)
        except ValidationError as error:
            raise InputError(describe_validation(error, where)) from None
        return factory(**{name: getattr(checked, name) for name in checked.model_fields_set})

    def _imported(self, name: str, where: str) -> Callable[..., T]:
        module_name, _, attribute = name.partition(":")
        try:
            factory: Callable[..., T] = getattr(import_module(module_name), attribute)
        except (ImportError, AttributeError) as error:
            raise InputError(f"{where}: can't import {self.kind} {name!r}: {error}") from error
        return factory


def _settings_model(factory: Callable[..., object]) -> type[BaseModel]:
    """The factory's parameters as a model, so that a class and a function are checked alike."""
    hints = get_type_hints(inspect.unwrap(vars(factory)["__init__"]) if isinstance(factory, type) else factory)
    fields: dict[str, tuple[object, object]] = {
        parameter.name: (
            hints.get(parameter.name, object),
            ... if parameter.default is parameter.empty else parameter.default,
        )
        for parameter in inspect.signature(factory).parameters.values()
    }
    config = ConfigDict(arbitrary_types_allowed=True)
    model: type[BaseModel] = create_model("Settings", __config__=config, **fields)  # type: ignore[call-overload]
    return model


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """'did you mean X?' for a near miss, else the list of what there is."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known) or 'none'}"


def describe_validation(error: ValidationError, where: str = "", known: Sequence[str] = ()) -> str:
    """The first thing wrong, in one line: where, what, what was given. ``known`` holds the keys there are."""
    first = error.errors()[0]
    place = ".".join([where, *map(str, first["loc"])] if where else map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return f"{place}: unknown key; {did_you_mean(str(first['loc'][-1]), known)}"
    if first["type"] == "missing":
        return f"{place}: is missing"
    given = first.get("input")
    shown = f" (got {given!r})" if isinstance(given, str | int | float | bool) else ""
    more = f"; and {error.error_count() - 1} more" if error.error_count() > 1 else ""
    return f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}{shown}{more}"
