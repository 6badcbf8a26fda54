"""Reading what a program handed over: JSON and nothing else, whatever it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.json_types import JSON
from flowevolve.sandbox.outcome import DEEPEST, read_result
from tests.support.depth import examples

PLAIN: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(PLAIN)
@examples(50)
def test_what_json_can_say_comes_through(value: JSON) -> None:
    assert read_result(json.dumps(value).encode(), 2**20) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    try:
        value = read_result(text, 100)
    except ValueError:
        return
    assert len(text) <= 100
    json.dumps(value, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "without a result"),
        (b" \n", "without a result"),
        (b"[1] [2]", "Extra data"),
        (b"[NaN]", "NaN is no JSON number"),
        (b"-Infinity", "-Infinity is no JSON number"),
        (b"1e999", "beyond what a float holds"),
        (b"9" * 400, "beyond what a float holds"),
        (b"9" * 5000, "not JSON"),
        (b'{"\\ud800": 1}', "half a character"),
        (b'["\\udfff"]', "half a character"),
        (b"[" * 100_000, "not JSON|nested"),
        (b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1), "nested more than"),
        ("[1]".encode("utf-16"), "not JSON"),
        (b'"' + b"x" * 2**20 + b'"', "longer than"),
    ],
)
def test_anything_else_is_refused_in_one_line(text: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        read_result(text, 2**20)
    assert "\n" not in str(error.value)


def test_the_deepest_that_is_allowed() -> None:
    value = read_result(b"[" * (DEEPEST - 1) + b"1" + b"]" * (DEEPEST - 1), 2**20)
    for _ in range(DEEPEST - 1):
        assert isinstance(value, list)
        value = value[0]
    assert value == 1


def test_a_result_may_be_as_long_as_the_limit() -> None:
    assert read_result(b"[1234]", 6) == [1234]
    with pytest.raises(ValueError, match="longer than 5 bytes"):
        read_result(b"[1234]", 5)
