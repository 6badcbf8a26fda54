"""The signature that ``help`` and completion show for a function whose keyword arguments a table of types declares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import ForwardRef, TypeVar

F = TypeVar("F", bound=Callable[..., object])


def shows_arguments(table: type, defaults: Mapping[str, object]) -> Callable[[F], F]:
    """A decorator for a function whose ``**arguments`` are those of a `TypedDict`; arguments without a default are
    required.
    """

    def decorated(function: F) -> F:
        shown = inspect.signature(function)
        plain = [each for each in shown.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults.get(name, inspect.Parameter.empty),
                annotation=_said(annotation),
            )
            for name, annotation in table.__annotations__.items()
        ]
        function.__signature__ = shown.replace(parameters=[*plain, *named])  # type: ignore[attr-defined]  # inspect's
        return function

    return decorated


def _said(annotation: object) -> str:
    """An annotation as it is written in the source."""
    text = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else str(annotation)
    return re.sub(r"^Required\[(.*)\]$", r"\1", text)
