"""Value objects: equal by what they hold, keys of dicts, without room for anything else."""

from __future__ import annotations

from dataclasses import field, replace

import pytest

from flowevolve._util.values import value


@value
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list, hash=False)


def test_equal_objects_are_one_key() -> None:
    assert {Point(1): "here"}[Point(1, 0)] == "here"
    assert Point(1) != Point(2)


def test_a_changed_copy_leaves_the_original_as_it_was() -> None:
    point = Point(1)
    assert replace(point, y=5) == Point(1, 5)
    assert point.y == 0


def test_nothing_can_be_added_to_an_object() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]
