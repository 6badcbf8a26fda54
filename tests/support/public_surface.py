"""What a program may rely on, as text: public names with their parameters (docs/reference/compatibility.md).

``python -m tests.support.public_surface`` writes it anew, where a change is meant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from pydantic import BaseModel
from typing_extensions import is_protocol

SNAPSHOT = Path(__file__).parents[1] / "public_surface.txt"
PLACES = ["flowevolve", "flowevolve.stages", "flowevolve.compat.gepa"]


def surface() -> str:
    return "\n".join(line for place in PLACES for line in _lines(place)) + "\n"


def _lines(place: str) -> Iterator[str]:
    module = import_module(place)
    for name in sorted(name for name in dir(module) if not name.startswith("_")):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            if place == "flowevolve":
                yield f"{place}.{name}: module"
        elif isinstance(value, type):
            yield f"{place}.{name}{_parameters(value)}"
            yield from (f"{place}.{name}.{member}" for member in _members(value))
        elif callable(value):
            yield f"{place}.{name}{_parameters(value)}"
        elif getattr(value, "__module__", "flowevolve").startswith("flowevolve"):
            yield f"{place}.{name}"


def _members(kind: type) -> Iterator[str]:
    """What a class of ours has; of a pydantic model without what every model has."""
    ours = {
        name: value
        for base in reversed(kind.__mro__)
        if base.__module__.startswith("flowevolve")
        for name, value in [*dict.fromkeys(base.__annotations__).items(), *vars(base).items()]
        if not name.startswith("_")
    }
    for name, value in sorted(ours.items()):
        function = getattr(value, "__func__", value)
        if name in ("model_config", "model_post_init"):
            continue
        if inspect.isfunction(function):
            yield f"{name}{_parameters(function)}"
        else:
            yield name


def _parameters(function: Callable[..., object]) -> str:
    """Names, kinds and defaults; types are the type checker's to compare."""
    if isinstance(function, type) and (issubclass(function, (Exception, BaseModel)) or is_protocol(function)):
        return ""  # a model's are its members
    plain = [
        parameter.replace(annotation=parameter.empty, default=_default(parameter))
        for parameter in inspect.signature(function).parameters.values()
    ]
    return str(inspect.Signature(plain))


def _default(parameter: inspect.Parameter) -> object:
    """A plain one as it is; of any other that there is one."""
    plain = parameter.default is parameter.empty or repr(parameter.default)[:1] != "<"
    return parameter.default if plain else ...


if __name__ == "__main__":
    SNAPSHOT.write_text(surface(), encoding="utf-8")
