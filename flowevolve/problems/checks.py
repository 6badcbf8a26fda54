"""Checks of results that untrusted programs return. Each error message says what was expected and what was found."""

from __future__ import annotations

import math

from flowevolve._util.json_types import JSON
from flowevolve.programs import WrongResultError


def list_of(value: JSON, what: str, count: int | None = None) -> list[JSON]:
    """Check that a value is a list, of length ``count`` if that is given.

    Raises:
        WrongResultError: if it is not.
    """
    if not isinstance(value, list):
        raise WrongResultError(f"{what} must be a list, not {kind(value)}")
    if count is not None and len(value) != count:
        raise WrongResultError(f"{what} must have {count} entries, not {len(value)}")
    return value


def number(value: JSON, what: str) -> float:
    """Check that a value is a number that a finite float can hold.

    Raises:
        WrongResultError: if it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongResultError(f"{what} must be a number, not {kind(value)}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise WrongResultError(f"{what} must be a finite number")
    return result


def whole_number(value: JSON, what: str, below: int) -> int:
    """Check that a value is a whole number of at least 0 and below a bound.

    Raises:
        WrongResultError: if it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongResultError(f"{what} must be a whole number, not {kind(value)}")
    if not 0 <= value < below:
        raise WrongResultError(f"{what} must be from 0 to {below - 1}, not {_short(value)}")
    return value


def vectors(value: JSON, what: str, count: int, size: int) -> list[list[float]]:
    """Check that a value is a list of ``count`` lists of ``size`` numbers.

    Raises:
        WrongResultError: naming the first entry that is wrong.
    """
    return [
        [number(part, f"{what}[{i}][{j}]") for j, part in enumerate(list_of(row, f"{what}[{i}]", size))]
        for i, row in enumerate(list_of(value, what, count))
    ]


def permutation(value: JSON, what: str, count: int) -> list[int]:
    """Check that a value is a list of the whole numbers below ``count`` in some order.

    Raises:
        WrongResultError: naming the first entry that is wrong.
    """
    order = [whole_number(entry, f"{what}[{i}]", count) for i, entry in enumerate(list_of(value, what, count))]
    places: dict[int, int] = {}
    for place, entry in enumerate(order):
        if entry in places:
            raise WrongResultError(f"{what} has {entry} twice, at {places[entry]} and {place}; each must be there once")
        places[entry] = place
    return order


def kind(value: JSON) -> str:
    """Say in words what kind of value this is."""
    match value:
        case None:
            return "null (did the function return anything?)"
        case bool():
            return "a truth value"
        case int() | float():
            return f"the number {_short(value)}"
        case str():
            return "a text"
        case list():
            return f"a list of {len(value)}"
        case _:
            return "an object"


def _short(value: float) -> str:
    if isinstance(value, int) and abs(value) >= 10**15:
        return "a number of more than 15 digits"
    return repr(value)
