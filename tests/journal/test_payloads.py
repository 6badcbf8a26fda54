"""Payloads come back equal, name no module and run no code; artifacts that are in the journal are named, not copied."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isnan
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import StorageError
from flowevolve.core.artifact import Artifact
from flowevolve.core.payload_kinds import NotKeptError, payload
from flowevolve.core.pool import Candidate
from flowevolve.journal.payloads import dump, load
from flowevolve.stages.payloads import Proposed

LONG = "a text that is not copied " * 50
KNOWN, NEW = Artifact({"p": LONG}), Artifact({"p": "short", "q": "\ud800"}, "program")


@payload("tests.Holder")
@dataclass(frozen=True, slots=True)
class Holder:
    value: object
    more: int = 0


class Subclass(Holder):
    pass


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()) | st.binary()
HASHABLE = st.recursive(PLAIN, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
VALUES = st.recursive(
    HASHABLE | st.sets(HASHABLE, max_size=3) | st.just(KNOWN) | st.just(NEW),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4).map(MappingProxyType)
        | st.builds(Holder, inner, st.integers())
    ),
    max_leaves=20,
)


def shape(value: Any) -> object:
    """A value with its types and the order of its keys, which ``==`` does not look at."""
    if isinstance(value, dict | MappingProxyType):
        return type(value), tuple((shape(key), shape(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(map(shape, value))
    if isinstance(value, set | frozenset):
        return type(value), frozenset(map(shape, value))
    return type(value), shape(value.value) if isinstance(value, Holder) else repr(value)


@given(value=VALUES)
def test_what_is_loaded_is_what_was_dumped(value: object) -> None:
    data = dump(value, {KNOWN.id})
    loaded = load(data, {KNOWN.id: KNOWN})
    assert loaded == value
    assert shape(loaded) == shape(value)
    assert LONG.encode() not in data


@pytest.mark.parametrize("value", [inf, -inf, 1e-320, 2**200, -0.0, "\ud800", {"\udfff": ("é", b"\x80")}])
def test_odd_values_come_back(value: object) -> None:
    assert shape(load(dump(Holder(value), ()), {})) == shape(Holder(value))


def test_no_number_comes_back() -> None:
    loaded = load(dump(float("nan"), ()), {})
    assert isinstance(loaded, float)
    assert isnan(loaded)


def test_what_nests_deeply_comes_back() -> None:
    value: object = 1
    for _ in range(100):
        value = {"in": value}
    assert load(dump(value, ()), {}) == value


def test_an_artifact_that_is_not_journaled_yet_travels_whole() -> None:
    loaded = load(dump(NEW, {KNOWN.id}), {})
    assert isinstance(loaded, Artifact)
    assert (dict(loaded), loaded.kind, loaded.id) == (dict(NEW), NEW.kind, NEW.id)


def test_what_is_kept_is_json_that_names_kinds_and_no_modules() -> None:
    value = Proposed(Candidate("c1", KNOWN, ("c0",)).scored({"e": 0.5}), ("e",), None)
    (kind, held) = json.loads(dump(value, {KNOWN.id}))
    (_, candidate) = held["candidate"]
    assert (kind, held["batch"], candidate["artifact"]) == ("Proposed", ["tuple", "e"], ["artifact", KNOWN.id])
    assert candidate["scores"] == ["view", {"e": 0.5}]
    assert "flowevolve" not in json.dumps(held)


def itself() -> object:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Holder(object()), "the journal can't hold a builtins.object"),
        (lambda: Subclass(1), r"test_payloads\.Subclass; .* write @flowevolve\.payload above it"),
        (lambda: {"in": [lambda: None]}, "function"),
        (itself, "RecursionError"),
    ],
)
def test_what_can_not_be_kept_says_why(make: Callable[[], object], says: str) -> None:
    with pytest.raises(NotKeptError, match=says):
        dump(make(), ())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (dump(KNOWN, {KNOWN.id}), f"artifact {KNOWN.id} is not in the journal"),
        (
            b'["no_such.Kind",{}]',
            r"no package .* defines payloads of kind 'no_such\.Kind'\. .* the plug-ins that it was",
        ),
        (b'["tests.Holder",{}]', "missing 1 required positional argument: 'value'"),
        (
            b'["tests.Holder",{"value":1,"newer":2}]',
            r"unexpected keyword argument 'newer'\. .* a field that was added to a payload",
        ),
        (b'["tests.Holder",1]', "can't be loaded"),
        (b'["artifact",[],{}]', "can't be loaded"),
        (b'["again",0]', "can't be loaded"),
        (b"[]", "can't be loaded"),
        (b"[" * 100_000, "can't be loaded"),
        (b"torn", "can't be loaded"),
    ],
)
def test_what_cannot_be_loaded_says_why_in_one_line(data: bytes, says: str) -> None:
    with pytest.raises(StorageError, match=says) as caught:
        load(data, {})
    assert "\n" not in str(caught.value)


def test_a_field_that_has_a_default_may_be_missing() -> None:
    assert load(b'["tests.Holder",{"value":1}]', {}) == Holder(1)


class Planted:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self._path),)


def test_a_planted_pickle_runs_no_code(tmp_path: Path) -> None:
    planted = pickle.dumps(Planted(tmp_path / "ran"))
    with pytest.raises(StorageError, match="an earlier version of flowevolve, whose runs can't be resumed"):
        load(planted, {})
    text = pickle.dumps(Planted(tmp_path / "ran"), protocol=0)
    with pytest.raises(StorageError, match="can't be loaded"):
        load(text, {})
    assert not (tmp_path / "ran").exists()
