"""The events of a run over an adapter are read as they have always been written, by journals of before as well."""

from __future__ import annotations

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.compat.gepa.records import (
    AdapterState,
    ChosenComponents,
    Iteration,
    NewTexts,
    Screened,
    Validated,
    Validating,
)
from flowevolve.core.record import Record

MERGE: dict[str, JSON] = {"parents": ["c3", "c5"], "texts": {"first": "a", "second": "\ud800"}, "batch": ["0", "2"]}
WRITTEN: list[tuple[type[Record], dict[str, JSON]]] = [
    (Iteration, {"merge": None, "tasks": [{"parent": "c0", "batch": ["4", "1"]}], "iteration": 1, "version": 1}),
    (Iteration, {"merge": MERGE, "tasks": [], "iteration": 6, "version": 5}),
    (Iteration, {"merge": None, "tasks": [], "undrawable": "no weights", "iteration": 6, "version": 5}),
    (Iteration, {"merge": None, "tasks": [], "failed": "batch_sampler failed", "iteration": 4, "version": 3}),
    (ChosenComponents, {"candidate": "c0", "components": ["first", "third"], "cursor": 1}),
    (NewTexts, {"texts": {"first": "b"}}),
    (Screened, {"candidate": "c1", "accepted": True, "scores": [1, 0.5]}),
    (Validating, {"candidate": "c0", "calls": 0}),
    (Validated, {"candidate": "c0", "calls": 0, "objectives": {"0": {"score": 0.6, "rest": 0.4}}}),
    (AdapterState, {"state": {"seen": 3, "list": [None, True]}}),
]


@pytest.mark.parametrize(("of", "data"), WRITTEN)
def test_what_was_written_is_read_and_written_again(of: type[Record], data: dict[str, JSON]) -> None:
    read = of.from_json({"stage": "select", "item": "1", **data})
    assert list(read.to_json().items()) == list(data.items())
    assert repr(read.to_json()) == repr(data)
