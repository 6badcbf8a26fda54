"""Every kind of event is written to JSON and read back as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Literal, NewType, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.core.budget import Cost
from flowevolve.core.event_body import KINDS, Plain, read_body
from flowevolve.core.events import Event
from tests.engine.recovery.test_recovery import SETTINGS, evolve

NUMBERS = st.integers(0, 10**9) | st.floats(0, 1e9)
TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\ud800\x00"))
ATOMS: dict[object, st.SearchStrategy[object]] = {
    str: st.text(),
    int: st.integers(),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    NoneType: st.none(),
    Cost: st.builds(Cost, *[st.integers(0, 99)] * 3, st.floats(0, 99), st.integers(0, 99)),
}
PLAIN_DATA = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def values(hint: object) -> st.SearchStrategy[object]:
    """Whatever a field with this annotation may hold."""
    arguments, origin = get_args(hint), get_origin(hint)
    if hint in ATOMS:
        return ATOMS[hint]
    if isinstance(hint, NewType):
        return values(hint.__supertype__)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is Mapping:
        held = values(arguments[1]) if arguments[1] in (str, int, int | float) else PLAIN_DATA
        return st.dictionaries(TEXTS, held, max_size=3)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, arguments))
    assert isinstance(hint, type)
    assert issubclass(hint, Plain)
    hints = get_type_hints(hint)
    return st.builds(hint, **{each.name: values(hints[each.name]) for each in fields(hint)})


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_an_event_comes_back_from_its_json_as_it_was(kind: str, data: st.DataObject) -> None:
    body = data.draw(values(KINDS[kind]))
    assert isinstance(body, KINDS[kind])
    line = Event.of(3, 1.5, body).to_json()
    read = json.loads(line)
    again = Event(read.pop("seq"), read.pop("t"), read.pop("kind"), read)
    assert again.body == body
    assert Event.of(3, 1.5, again.body).to_json() == line


def test_the_events_of_a_run_are_read_and_written_as_they_were() -> None:
    _, facts = evolve(SETTINGS["stream"])
    for event in facts:
        if isinstance(event, Event):
            body = read_body(event.kind, json.loads(json.dumps(event.data)))
            assert Event.of(event.seq, event.time, body).to_json() == event.to_json()


def test_what_can_not_be_read_is_named() -> None:
    with pytest.raises(
        InputError, match=r"at event 7: flow\.close: flow is 'x', but has to be a whole number; more: unknown key"
    ):
        _ = Event(7, 0.0, "flow.close", {"flow": "x", "more": 1}).body
