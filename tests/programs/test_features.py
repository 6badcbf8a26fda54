"""What programs look like in numbers."""

from __future__ import annotations

import pytest

from flowevolve.programs.features import FEATURES, features, syntax_error

SOURCE = """\
def f(xs, n):
    total = 0
    for x in xs:
        for i in range(n):
            if x > i and x < 9 or x == 0:
                total += x * xs[i] - 1
        while total > 9:
            total -= 1
    for x in [y for y in xs if y]:
        total = -x if x else abs(x)
    return total
"""


def test_features_count_what_their_names_say() -> None:
    assert features(SOURCE, list(FEATURES)) == {
        "cyclomatic_complexity": 1 + 4 + 2 + 1 + 1 + 2,  # loops, branches, operands, and a comprehension with a clause
        "loop_count": 4,
        "loop_nesting": 2,
        "branch_count": 2,
        "comparison_count": 4,
        "call_count": 2,
        "math_operators": 5,
        "comprehension_count": 1,
        "subscript_count": 1,
        "length": len(SOURCE),
    }


def test_what_does_not_parse_has_none() -> None:
    assert features("def f(:", ["length"]) is None
    with pytest.raises(KeyError):
        features("a = 1", ["beauty"])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("a = 1", None),
        ("a = '\\d'", None),
        ("def f(:\n    pass", "line 1: invalid syntax"),
        ("a = 1\nreturn a", "line 2: 'return' outside function"),
        ("a = '\0'", "null bytes"),
        ("(" * 500, "line 1: too many nested parentheses"),
    ],
)
def test_a_syntax_error_says_where_and_what(source: str, says: str | None) -> None:
    found = syntax_error(source)
    assert (found is None) if says is None else (found is not None and says in found)
