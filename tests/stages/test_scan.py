"""The parallel scan: whatever is merged, all of it is in the result, by calls of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import anyio
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve.stages.scan import scan

Part = frozenset[int]


class Union:
    """Merges by union, a second each; merges named in ``failing`` come to nothing."""

    def __init__(self, failing: Sequence[str] = ()) -> None:
        self.sizes: list[int] = []
        self.names: list[str] = []
        self._failing = failing

    async def __call__(self, parts: Sequence[Part], name: str) -> Part | None:
        self.sizes.append(len(parts))
        self.names.append(name)
        await anyio.sleep(1)
        return None if name in self._failing else frozenset(number for part in parts for number in part)


def scanned(count: int, merge: Union, *, copies: int = 2, most: int = 8, seed: int = 0) -> tuple[list[Part], float]:
    """The result, and how many seconds it took."""

    async def go() -> tuple[list[Part], float]:
        began = anyio.current_time()
        parts = [frozenset({number}) for number in range(count)]
        merged = await scan(parts, merge, copies=copies, most=most, rng=Random(seed))
        return list(merged), anyio.current_time() - began

    return clock.run(go, clock="virtual")


@given(st.integers(1, 120), st.integers(1, 3), st.integers(2, 12), st.integers(0, 9))
def test_nothing_is_lost_and_no_merge_gets_too_much(count: int, copies: int, most: int, seed: int) -> None:
    merge = Union()
    merged, _ = scanned(count, merge, copies=copies, most=most, seed=seed)
    assert merged == [frozenset(range(count))]
    assert all(2 <= size <= most for size in merge.sizes)
    assert len(set(merge.names)) == len(merge.names)


def test_the_groups_of_a_level_are_merged_side_by_side() -> None:
    merge = Union()
    _, seconds = scanned(40, merge)
    assert seconds == 3
    assert merge.sizes == [8] * 10 + [5] * 2 + [2]


def test_few_are_merged_by_one_call_and_one_by_none() -> None:
    merge = Union()
    assert scanned(8, merge)[1] == 1
    assert merge.sizes == [8]
    assert scanned(1, merge) == ([frozenset({0})], 0)
    assert scanned(0, merge) == ([], 0)


@given(st.integers(0, 9), st.sampled_from(["1.0", "1.1"]), st.integers(0, 50))
def test_a_merge_that_comes_to_nothing_loses_nothing(first: int, second: str, seed: int) -> None:
    for failing in ([f"0.{first}"], [second], [f"0.{first}", second]):
        merge = Union(failing)
        merged, _ = scanned(40, merge, seed=seed)
        assert merged == [frozenset(range(40))]
        assert max(merge.sizes) <= 8


def test_where_the_last_merge_comes_to_nothing_its_parts_are_the_result() -> None:
    merge = Union(["2.0"])
    merged, _ = scanned(40, merge)
    assert len(merged) == 2
    assert merged[0] | merged[1] == frozenset(range(40))
    assert merge.names[-1] == "2.0"


def test_where_no_merge_of_the_first_level_comes_to_anything_nothing_does() -> None:
    assert scanned(9, Union(["0.0", "0.1", "0.2"]))[0] == []


@given(st.integers(9, 60), st.sets(st.tuples(st.integers(1, 5), st.integers(0, 5))), st.integers(2, 8))
def test_above_the_first_level_nothing_is_lost_whatever_fails(
    count: int, failing: set[tuple[int, int]], most: int
) -> None:
    merge = Union([f"{level}.{place}" for level, place in failing])
    merged, _ = scanned(count, merge, most=most)
    assert frozenset[int]().union(*merged) == frozenset(range(count))
    assert max(merge.sizes) <= most
    assert len(set(merge.names)) == len(merge.names)
