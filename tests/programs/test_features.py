"""What programs look like in numbers."""

from __future__ import annotations

import pytest

from flowevolve.programs.features import FEATURES, features, program_features, syntax_error

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


def test_of_several_files_features_add_up_and_the_deepest_nesting_counts() -> None:
    future = f"from __future__ import annotations\n{SOURCE}"
    found = program_features({"program.py": SOURCE, "helper.py": future, "notes.txt": "not ("}, list(FEATURES))
    one, other = features(SOURCE, list(FEATURES)), features(future, list(FEATURES))
    assert found is not None
    assert one is not None
    assert other is not None
    assert found == {name: 2 if name == "loop_nesting" else one[name] + other[name] for name in FEATURES}


def test_a_program_has_no_features_if_one_of_its_files_has_none() -> None:
    assert program_features({"program.py": SOURCE, "helper.py": "def f(:"}, ["length"]) is None
    assert program_features({"main.c": "int x;", "data.txt": "x"}, ["length"]) is None


@pytest.mark.parametrize("source", [SOURCE, "def f(:", "int x;"])
def test_of_one_file_they_are_its_own_whatever_its_name_is(source: str) -> None:
    assert program_features({"program.x": source}, list(FEATURES)) == features(source, list(FEATURES))


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
