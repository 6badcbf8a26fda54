"""The page about events has every kind of event, note, change and attribute, with all fields and their types."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TypeVar, get_args

import pytest

from flowevolve.core.acts import AnyAct
from flowevolve.core.event_body import KINDS
from flowevolve.core.event_kinds import StageEvent
from flowevolve.core.logged_changes import LoggedChange
from flowevolve.core.record import Attributes, PlainData, Record
from flowevolve.runner.registries import ALGORITHMS
from tests.support.field_tables import Entry, entries, rows, section, types_of
from tests.test_imports import modules

P = TypeVar("P", bound=PlainData)
PAGE = section("events.md")
ACTS, CHANGES, NOTES = (entries(section("events.md", each)) for each in ("Acts", "Changes of the pool", "Notes"))
EVENTS = [each for each in entries(PAGE) if each not in (*ACTS, *CHANGES, *NOTES)]
WRITES = {"log", "decide", "once", "keep"}
"""The methods of a context that write an event."""
UNDECLARED = {
    *("approved", "edits", "examples", "form", "frozen", "guided", "measurements", "of_one_edit", "plan", "program"),
    *("reflections", "test"),
}
"""Attributes of candidates that no class declares."""
TREES = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in modules().items()}


@dataclass(frozen=True)
class Written:
    """A place where a stage writes an event: the names of its fields, as far as they stand there."""

    kind: str
    fields: frozenset[str]
    whole: bool
    """Whether these are all fields."""


def constants(tree: ast.Module) -> Mapping[str, str]:
    """The texts that a module gives a name to."""
    return {
        name: text
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target, value in [(node.targets[0], node.value)]
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant)
        for name, text in [(target.id, value.value)]
        if isinstance(text, str)
    }


def written_in(tree: ast.Module) -> Iterator[Written]:
    """Every event whose kind stands in the call that writes it."""
    known = constants(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=attr), args=[ast.Constant(value=str(kind)), *_]) if attr in WRITES:
                pass
            case ast.Call(func=ast.Attribute(attr="log"), args=[ast.Name(id=name)]) if name in known:
                attr, kind = "log", known[name]
            case _:
                continue
        named = frozenset(each.arg for each in node.keywords if each.arg is not None)
        whole = attr == "keep" or (attr == "log" and len(named) == len(node.keywords))
        yield Written(kind, named if attr == "log" else frozenset(), whole)


WRITTEN = sorted(
    {each for tree in TREES.values() for each in written_in(tree)},
    key=lambda each: (each.kind, sorted(each.fields), each.whole),
)


def declared(base: type[P]) -> list[type[P]]:
    """The classes that ship and are derived from this one, whichever modules they are in."""
    for name in ALGORITHMS.builtin:
        ALGORITHMS.find(name, "algorithm.name")
    for module, tree in TREES.items():
        bases = {ast.unparse(base) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases}
        if not bases.isdisjoint({Record.__name__, Attributes.__name__}):
            import_module(module)
    return [each for each in derived(base) if each.__module__.startswith("flowevolve.")]


def derived(base: type[P]) -> Iterator[type[P]]:
    for each in base.__subclasses__():
        yield each
        yield from derived(each)


RECORDS = declared(Record)


def holds(entry: Entry, of: Mapping[str, str]) -> bool:
    return of.items() <= entry.types.items()


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_with_a_class_has_its_fields_and_their_types(kind: str) -> None:
    each = KINDS[kind]
    is_stages = issubclass(each, StageEvent)
    wanted = {name: of for name, of in types_of(each).items() if not (is_stages and name in ("stage", "item"))}
    assert [found for found in EVENTS if found.name == kind] == [Entry(kind, wanted, is_stages)]


@pytest.mark.parametrize("record", RECORDS, ids=lambda each: f"{each.__module__}.{each.__name__}")
def test_a_record_of_an_algorithm_has_its_fields_and_their_types(record: type[Record]) -> None:
    named = [each for each in (*EVENTS, *NOTES) if each.name == record.kind]
    assert any(holds(each, types_of(record)) for each in named), types_of(record)


@pytest.mark.parametrize("written", WRITTEN, ids=lambda each: f"{each.kind} {' '.join(sorted(each.fields))}")
def test_an_event_that_a_stage_writes_has_its_fields(written: Written) -> None:
    assert any(each.name == written.kind and written.fields <= set(each.types) for each in EVENTS)


@pytest.mark.parametrize("entry", [*EVENTS, *NOTES], ids=lambda each: each.name)
def test_nothing_is_listed_that_is_not_written(entry: Entry) -> None:
    """Each field is one of a class, or of a call that writes such an event."""
    if entry.name in KINDS:
        return
    of_records = [set(types_of(each)) for each in RECORDS if each.kind == entry.name and holds(entry, types_of(each))]
    calls = [each for each in WRITTEN if each.kind == entry.name and each.fields <= set(entry.types)]
    assert of_records or calls
    if all(each.whole for each in calls):
        assert set(entry.types) == set().union(*of_records, *(each.fields for each in calls))


def test_acts_have_their_fields() -> None:
    assert [
        Entry(each.act, {name: of for name, of in types_of(each).items() if name != "act"}) for each in get_args(AnyAct)
    ] == ACTS


def test_changes_of_the_pool_have_their_fields() -> None:
    assert [Entry(next(iter(types_of(each))), types_of(each)) for each in get_args(LoggedChange)] == CHANGES


def test_attributes_of_candidates_are_those_that_are_noted() -> None:
    listed = rows(section("events.md", "Attributes of candidates"))
    wanted: dict[str, str] = {}
    for each in declared(Attributes):
        wanted |= {name: of.removesuffix(", optional") for name, of in types_of(each).items()}
    assert {name: of for name, of in listed.items() if name not in UNDECLARED} == wanted
    assert not UNDECLARED - set(listed)
