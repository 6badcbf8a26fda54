"""What may travel as a payload: every kind that ships comes back, and names are one class's each."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import pytest
from gepa.core.adapter import EvaluationBatch
from hypothesis import given, settings, strategies as st

import flowevolve.compat.gepa  # noqa: F401  its payloads are registered as it is imported
from flowevolve._util.errors import EngineError
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.payload_kinds import kind_of, payload, registered
from flowevolve.journal.payloads import dump, load
from flowevolve.runner.registries import ALGORITHMS

for name in ALGORITHMS.builtin:
    ALGORITHMS.find(name, "algorithm.name")  # its payloads are registered as it is imported
SHIPPED = {kind.name: kind.type for kind in registered() if not kind.opaque and "tests" not in kind.type.__module__}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
PLAIN: Mapping[object, st.SearchStrategy[object]] = {
    object: st.text(),
    type(None): st.none(),
    str: st.text(),
    int: st.integers(),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    JSON: ANY_JSON,
    Artifact: st.builds(Artifact, st.dictionaries(st.text(), st.text(), min_size=1, max_size=2)),
}
OPAQUE: Mapping[object, st.SearchStrategy[object]] = {
    EvaluationBatch: st.builds(EvaluationBatch, st.lists(st.text(), max_size=2), st.lists(st.floats(0, 1), max_size=2)),
}
"""Values of the types that are kept whole, whatever their fields are."""


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type. Only what a payload may hold has any."""
    hint = getattr(hint, "__supertype__", hint)  # of a new type of text, which at run time is a text
    inner = get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, TypeVar):
        return st.text()
    if get_origin(hint) in OPAQUE:
        return OPAQUE[get_origin(hint)]
    if is_dataclass(get_origin(hint) or hint):
        return objects(get_origin(hint) or hint)
    if get_origin(hint) is Literal:
        return st.sampled_from(inner)
    if get_origin(hint) in (Union, types.UnionType):
        return st.one_of(*map(values, inner))
    if get_origin(hint) is tuple and inner[-1] is Ellipsis:
        return st.lists(values(inner[0]), max_size=2).map(tuple)
    if get_origin(hint) is tuple:
        return st.tuples(*map(values, inner))
    if get_origin(hint) is Mapping:
        return st.dictionaries(values(inner[0]), values(inner[1]), max_size=2)
    if get_origin(hint) is Sequence:
        return st.lists(values(inner[0]), max_size=2)
    raise AssertionError(f"a payload that ships has a field of type {hint}, which the journal can't hold")


def objects(of: Any) -> st.SearchStrategy[Any]:
    assert kind_of(of) is not None, f"{of} is inside a payload that ships, and has no @payload"
    hints = get_type_hints(of)
    return st.builds(of, **{field.name: values(hints[field.name]) for field in fields(of) if field.init})


@pytest.mark.parametrize("name", SHIPPED)
@settings(max_examples=10)
@given(data=st.data())
def test_every_payload_that_ships_comes_back(name: str, data: st.DataObject) -> None:
    value = data.draw(objects(SHIPPED[name]))
    assert load(dump(value, frozenset()), {}) == value


def test_a_name_is_one_classs() -> None:
    @payload("tests.taken")
    @dataclass(frozen=True)
    class First:
        pass

    with pytest.raises(
        EngineError, match=r"'tests\.taken' is taken by .*First; .*@payload\(\"test_payload_kinds\.Second\"\)"
    ):

        @payload("tests.taken")
        @dataclass(frozen=True)
        class Second:
            pass

    for own in ("tuple", "Candidate"):
        with pytest.raises(EngineError, match=f"'{own}' is taken by"):
            payload(own)(First)


def test_a_class_that_is_defined_once_more_takes_its_own_place() -> None:
    def define() -> Any:
        @payload("tests.redefined")
        @dataclass(frozen=True)
        class Redefined:
            value: int

        return Redefined

    before, after = define(), define()
    assert load(dump(before(1), frozenset()), {}) == after(1)


def test_only_a_dataclass_can_be_a_payload() -> None:
    with pytest.raises(EngineError, match="above @dataclass"):
        payload(object)
