"""JSON is written and read as Python's own module does it, whichever of two writers and readers is at work."""

from __future__ import annotations

import json
from math import inf, nan

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.json_text import json_text, read_json, strict_json

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
)


@given(PLAIN)
def test_what_is_written_is_read_as_it_was_with_any_reader(value: object) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    assert read_json(json.dumps(value).encode()) == value


def test_there_are_no_spaces_and_letters_stand_for_themselves() -> None:
    assert json_text({"a": [1, "é"], "b": None}) == '{"a":[1,"é"],"b":null}'
    assert json_text({"a": "\ud800", "b": [1]}) == '{"a":"\ud800","b":[1]}'
    assert json_text([inf, -inf, nan]) == "[Infinity,-Infinity,NaN]"


def test_what_is_strict_takes_what_every_reader_takes() -> None:
    assert strict_json({"a": "é, NaN and Infinity"}) == '{"a":"é, NaN and Infinity"}'.encode()
    for value in (nan, [inf], {"a": -inf}):
        with pytest.raises(ValueError, match="not JSON compliant"):
            strict_json(value)
    with pytest.raises(ValueError, match="surrogates not allowed"):
        strict_json("\ud800")


@pytest.mark.parametrize("write", [json_text, strict_json])
def test_what_json_does_not_have_is_refused(write: object) -> None:
    assert callable(write)
    with pytest.raises(TypeError, match="not JSON serializable"):
        write({"a": object()})


def test_what_is_no_json_is_refused() -> None:
    for content in (b"", b"[1", b"{'a': 1}"):
        with pytest.raises(ValueError, match=r"Expecting|Extra"):
            read_json(content)
    assert read_json(b"\xef\xbb\xbf[1]") == [1]
    assert read_json(b"[" * 500 + b"]" * 500) is not None
    with pytest.raises(RecursionError):
        read_json(b"[" * 200_000)
