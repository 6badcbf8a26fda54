"""Objects that a configuration can name: built-in ones, those of installed packages, and all that can be imported.

A name is looked up among the built-in ones, then among the entry points of the registry's group, and, if it has the
form ``package.module:attribute``, imported. A plug-in never replaces a built-in name.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Generic, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import ErrorDetails
from typing_extensions import get_protocol_members, is_protocol

from flowevolve._util.errors import FlowevolveError, InputError, described, one_line
from flowevolve._util.plugins import LoadError, Plugin, imported, installed

T_co = TypeVar("T_co", covariant=True)
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Listed:
    """A name, the package that brings it (None for a built-in one), and what is wrong with it (None if nothing is)."""

    name: str
    package: str | None = None
    problem: str | None = None
    about: str = ""
    """What the object is, in a sentence or two: its ``description``, or the beginning of its docstring."""


@dataclass(frozen=True, slots=True)
class Registry(Generic[T_co]):
    """Factories by name. ``kind`` is the word used in messages, ``group`` the entry-point group for plug-ins.

    ``contract`` is what plug-ins must fulfil: the protocol of the objects that factories make, or the class from which
    the factories must be derived.
    """

    kind: str
    group: str
    builtin: Mapping[str, Callable[..., T_co] | str]
    """The built-in factories, or their names as ``package.module:attribute``, which are imported when needed."""
    contract: type | None = None
    reserved: Sequence[str] = ()
    """Built-in names whose objects are made elsewhere."""
    about: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of built-in names whose objects have none of their own."""

    def names(self) -> list[str]:
        """Every name known without importing anything."""
        return sorted({*self.reserved, *self.builtin, *(plugin.name for plugin in installed(self.group))})

    def listing(self) -> list[Listed]:
        """Every name, built-in ones first. All are imported, to get their descriptions and find out what is wrong."""
        plugins = installed(self.group)
        named = [plugin.name for plugin in plugins]
        shipped = [*self.reserved, *self.builtin]
        listed = [Listed(name, about=self._about(name)) for name in shipped]
        for plugin in plugins:
            if plugin.name in shipped:
                problem: str | None = (
                    f"something that ships with flowevolve has this name; give {plugin.target!r} instead"
                )
            elif named.count(plugin.name) > 1:
                problem = f"other packages bring this name, too; give {plugin.target!r} instead"
            else:
                problem = self._problem(plugin)
            listed.append(
                Listed(plugin.name, plugin.package, problem, "" if problem else _description_of(plugin.load()))
            )
        return listed

    def _about(self, name: str) -> str:
        """The description of a built-in name."""
        if name in self.about or name not in self.builtin:
            return self.about.get(name, "")
        shipped = self.builtin[name]
        return _description_of(imported(shipped) if isinstance(shipped, str) else shipped)

    def find(self, name: str, where: str) -> Callable[..., T_co]:
        """The factory of this name. ``where`` is the config key that named it, for messages.

        Raises:
            InputError: if there is none, if several packages bring one, or if it can't be used.
        """
        if name in self.builtin:
            shipped = self.builtin[name]
            return self._checked(imported(shipped)) if isinstance(shipped, str) else shipped
        plugins = [plugin for plugin in installed(self.group) if plugin.name == name]
        if len(plugins) > 1:
            whose = " and ".join(f"{plugin.package} ({plugin.target!r})" for plugin in plugins)
            raise InputError(
                f"{where}: several packages bring {self.kind} {name!r}: {whose}; give the name in the brackets of the "
                "one that you mean"
            )
        if not plugins and ":" not in name:
            hint = _with_colon(name) or did_you_mean(name, self.names())
            raise InputError(f"{where}: unknown {self.kind} {name!r}; {hint}")
        whose = f" of {plugins[0].package}" if plugins else ""
        try:
            return self._checked(imported(plugins[0].target if plugins else name))
        except LoadError as error:
            raise InputError(f"{where}: can't use {self.kind} {name!r}{whose}: {error}") from error

    def make(self, name: str, settings: Mapping[str, object], where: str) -> T_co:
        """Call the factory with the settings as keywords, checked against its signature.

        Raises:
            InputError: as `find`; if a setting is unknown, missing or of the wrong type (the message names it); if a
                plug-in's factory raises an error; or if the new object does not fulfil the contract.
        """
        factory = self.find(name, where)
        arguments = self.check(name, factory, settings, where)
        try:
            made = factory(**arguments)
        except ValueError as error:
            raise InputError(
                f"{where}: {self.kind} {name!r} does not accept its settings: {one_line(error)}"
            ) from error
        except Exception as error:
            if name in self.builtin or isinstance(error, FlowevolveError):
                raise
            raise InputError(f"{where}: {self.kind} {name!r} can't be made: {described(error)}") from error
        missing = _missing(made, self.contract)
        if missing:
            raise InputError(
                f"{where}: {name!r} makes something that is no {self.kind}, because it has no {', '.join(missing)}"
            )
        return made

    def check(
        self, name: str, factory: Callable[..., T_co], settings: Mapping[str, object], where: str
    ) -> dict[str, object]:
        """The settings as the factory's arguments.

        Raises:
            InputError: naming the setting that is unknown, missing or of the wrong type.
        """
        try:
            model = _settings_model(factory)
        except (NameError, TypeError) as error:
            raise InputError(
                f"{where}: the settings of {self.kind} {name!r} can't be checked: {one_line(error)}. Import the types "
                "of its parameters at run time, not only for type checkers"
            ) from error
        known = list(model.model_fields)
        for key in settings:
            if key not in known:
                raise InputError(f"{where}.{key}: {self.kind} {name!r} has no such setting; {did_you_mean(key, known)}")
        try:
            checked = model(**settings)
        except ValidationError as error:
            raise InputError(describe_validation(error, where)) from None
        return {name: getattr(checked, name) for name in checked.model_fields_set}

    def _problem(self, plugin: Plugin) -> str | None:
        try:
            self._checked(plugin.load())
        except LoadError as error:
            return str(error)
        return None

    def _checked(self, found: object) -> Callable[..., T_co]:
        """Raises:
        LoadError: if what was found can't be a factory of this registry.
        """
        base = self.contract
        if base is not None and not is_protocol(base) and not (isinstance(found, type) and issubclass(found, base)):
            raise LoadError(f"it is not a subclass of {base.__module__}.{base.__qualname__}")
        if not callable(found):
            raise LoadError(f"it is of type {type(found).__name__}, not a class or a function")
        return cast("Callable[..., T_co]", found)  # what it makes can be checked only when it is called


def _description_of(found: object) -> str:
    """An object's own description: its ``description``, or else the first paragraph of its docstring."""
    text = getattr(found, "description", None) or (inspect.getdoc(found) or "").partition("\n\n")[0]
    return "" if text.startswith("Raises:") else " ".join(text.replace("`", "").split())


def _with_colon(name: str) -> str:
    """A hint for an object to import that was written with a dot instead of a colon; empty for any other name."""
    module, _, attribute = name.rpartition(".")
    if not module or not all(part.isidentifier() for part in name.split(".")):
        return ""
    return f"the name of something to import has a colon before its last part; did you mean '{module}:{attribute}'?"


def _missing(made: object, contract: type | None) -> list[str]:
    if contract is None or not is_protocol(contract):
        return []
    return [name for name in sorted(get_protocol_members(contract)) if not hasattr(made, name)]


def _settings_model(factory: Callable[..., object]) -> type[BaseModel]:
    """The factory's parameters as a model, so that a class and a function are checked alike.

    Raises:
        NameError, TypeError: if the types of its parameters can't be determined.
    """
    hints = get_type_hints(
        inspect.unwrap(inspect.getattr_static(factory, "__init__")) if isinstance(factory, type) else factory
    )
    fields: dict[str, tuple[object, object]] = {
        parameter.name: (
            hints.get(parameter.name, object),
            ... if parameter.default is parameter.empty else parameter.default,
        )
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    config = ConfigDict(arbitrary_types_allowed=True)
    model: type[BaseModel] = create_model("Settings", __config__=config, **fields)  # type: ignore[call-overload]
    return model


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """'did you mean X?' for a near miss, else the list of known names."""
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there is only {known[0]}" if len(known) == 1 else f"there are {', '.join(known) or 'none'}"


def validated(model: type[M], settings: Mapping[str, object], where: str) -> M:
    """Check the settings, and return them as an instance of a model.

    Raises:
        InputError: if a setting is wrong; the message names the first one.
    """
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        raise InputError(describe_validation(error, where, list(model.model_fields))) from None


def describe_validation(error: ValidationError, where: str = "", known: Sequence[str] = ()) -> str:
    """The first fault in one line: where it is, what is wrong, and what was given. ``known`` has the known keys."""
    faults = _faults(error)
    first, more = faults[0], len(faults) - 1
    place = ".".join([where, *map(str, first["loc"])] if where else map(str, first["loc"]))
    others = f"; {more} more {'value is' if more == 1 else 'values are'} wrong" if more else ""
    return f"{_sentence(first, place, known)}{others}"


def describe_fault(fault: ErrorDetails, place: str) -> str:
    """One fault that a validation has found at a place, as in `describe_validation`."""
    return _sentence(_in_plain_words(fault), place, ())


def _sentence(fault: ErrorDetails, place: str, known: Sequence[str]) -> str:
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):  # of a model, of a dataclass
        hint = f"; {did_you_mean(str(fault['loc'][-1]), known)}" if known else ""
        return f"{place}: unknown key{hint}"
    if fault["type"] == "missing":
        return f"{place} is missing"
    given, message = fault["input"], fault["msg"]
    if message.startswith(_WANTED):
        is_wrong = "" if given is None else f"is {_shown(given)}, but "  # JSON has null for what it can't hold
        return f"{place or 'what was given'} {is_wrong}has to be {message.removeprefix(_WANTED)}"
    message = message.removeprefix("Value error, ")
    shown = f" (got {_shown(given)})" if isinstance(given, str | int | float) and repr(given) not in message else ""
    return f"{place}{': ' if place else ''}{message[:1].lower()}{message[1:]}{shown}"


def _shown(given: object) -> str:
    """A wrong value: a text or a number itself, and of anything else its kind."""
    if isinstance(given, str | int | float):
        return f"{given!r:.80}"
    if isinstance(given, Mapping | list | tuple):
        kind = "table" if isinstance(given, Mapping) else "list"
        return f"a {kind}" if given else f"an empty {kind}"
    return f"of type {type(given).__name__}"


_WANTED = "Input should be "
_IN_PLAIN_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "str": "a text",
    "list": "a list",
    "tuple": "a list",  # what is a tuple here is a list in a file
    "path": "a path",
    "dict": "a table",
    "mapping": "a table",
    "model": "a table of settings",
    "dataclass": "a table of settings",
    "greater_than": "above {gt:.12g}",
    "greater_than_equal": "at least {ge:.12g}",
    "less_than": "below {lt:.12g}",
    "less_than_equal": "at most {le:.12g}",
    "too_short": "{a_list} with at least {min_length} {entries}",
    "too_long": "{a_list} with at most {max_length} {entries}",
}
"""What a value has to be, by the types of pydantic's errors without their endings, and by names of Python's types."""
_ENDING = re.compile(r"_(type|parsing|parsing_size|from_float)$")


def _in_plain_words(fault: ErrorDetails) -> ErrorDetails:
    """The fault with a message in plain words, if pydantic's own is about types of Python or less plain."""
    details = fault.get("ctx", {})
    kind = str(details.get("class")) if fault["type"] == "is_instance_of" else _ENDING.sub("", fault["type"])
    if kind not in _IN_PLAIN_WORDS:
        return fault
    one = 1 in (details.get("min_length"), details.get("max_length"))
    words = {"a_list": "a table" if details.get("field_type") == "Dictionary" else "a list"}
    entries = "entry" if one else "entries"
    return {**fault, "msg": _WANTED + _IN_PLAIN_WORDS[kind].format(**details, **words, entries=entries)}


def _faults(error: ValidationError) -> list[ErrorDetails]:
    """What is wrong. If items of a tuple are wrong, the error that the tuple is too short without them is left out."""
    found = [_in_plain_words(each) for each in error.errors()]

    def has_wrong_items(place: tuple[int | str, ...]) -> bool:
        return any(each["loc"][: len(place)] == place and each["loc"] != place for each in found)

    wrong = [each for each in found if each["type"] != "too_short" or not has_wrong_items(each["loc"])]
    return list(_with_choices_as_one(wrong))


_CHOICE = re.compile(r"int|float|str|bool|constrained-\w+|(literal|list|tuple|dict|function-\w+)\[.*\]")
"""What pydantic puts at the end of an error's location for each type that the value could have."""


def _with_choices_as_one(faults: Sequence[ErrorDetails]) -> Iterator[ErrorDetails]:
    """The faults, with those merged that only name different types which the same value could have."""

    def place(fault: ErrorDetails) -> tuple[int | str, ...]:
        *before, last = fault["loc"] or ("",)
        return tuple(before) if before and _CHOICE.fullmatch(str(last)) else fault["loc"]

    for where, group in groupby(faults, place):
        first, *others = group
        message = " or ".join([first["msg"], *(each["msg"].removeprefix(_WANTED) for each in others)])
        yield {**first, "loc": where, "msg": message} if others else first
