"""Checks of the results of untrusted programs say what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.problems.checks import list_of, number, permutation, vectors, whole_number
from flowevolve.programs import WrongResultError


@pytest.mark.parametrize(
    ("check", "value", "says"),
    [
        (lambda value: list_of(value, "x"), None, "x must be a list, not null (did the function return anything?)"),
        (lambda value: list_of(value, "x"), {}, "x must be a list, not an object"),
        (lambda value: list_of(value, "x", 2), [1], "x must have 2 entries, not 1"),
        (lambda value: number(value, "x"), "1", "x must be a number, not a text"),
        (lambda value: number(value, "x"), True, "x must be a number, not a truth value"),
        (lambda value: number(value, "x"), [1, 2], "x must be a number, not a list of 2"),
        (lambda value: number(value, "x"), float("nan"), "x must be a finite number"),
        (lambda value: number(value, "x"), float("-inf"), "x must be a finite number"),
        (lambda value: number(value, "x"), 10**400, "x must be a finite number"),
        (lambda value: whole_number(value, "x", 3), 3, "x must be from 0 to 2, not 3"),
        (lambda value: whole_number(value, "x", 3), -1, "x must be from 0 to 2, not -1"),
        (
            lambda value: whole_number(value, "x", 3),
            10**400,
            "x must be from 0 to 2, not a number of more than 15 digits",
        ),
        (lambda value: whole_number(value, "x", 3), 1.0, "x must be a whole number, not the number 1.0"),
        (lambda value: whole_number(value, "x", 3), False, "x must be a whole number, not a truth value"),
        (lambda value: vectors(value, "x", 2, 1), [[0], [0, 1]], "x[1] must have 1 entries, not 2"),
        (lambda value: vectors(value, "x", 1, 2), [[0, None]], "x[0][1] must be a number, not null"),
        (lambda value: permutation(value, "x", 3), [0, 2, 2], "x has 2 twice, at 1 and 2; each must be there once"),
        (lambda value: permutation(value, "x", 3), [0, 1], "x must have 3 entries, not 2"),
    ],
)
def test_what_is_wrong_is_said(check: Callable[[JSON], object], value: JSON, says: str) -> None:
    with pytest.raises(WrongResultError) as caught:
        check(value)
    assert str(caught.value).startswith(says)


def test_what_is_right_passes() -> None:
    assert vectors([[1, 2.5], [3, 4]], "x", 2, 2) == [[1.0, 2.5], [3.0, 4.0]]
    assert permutation([2, 0, 1], "x", 3) == [2, 0, 1]
