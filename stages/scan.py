"""Merges many things into one by calls that each get only a few: the reduce of Combee (arXiv 2604.04247)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from flowevolve._util.tasks import run_all

T = TypeVar("T")
Group = tuple[int, ...]
"""Positions in a sequence."""
Merge = Callable[[Sequence[T], str], Awaitable[T | None]]
"""Merges two or more parts; returns None if that fails. The text names the merge within its scan, as level and place
(``0.3``).
"""


async def scan(parts: Sequence[T], merge: Merge[T], *, copies: int, most: int, rng: Random) -> Sequence[T]:
    """Merge all parts in a balanced tree of groups of at most ``most``. The groups of a level are merged concurrently.

    On the first level every part is in ``copies`` random groups, so that nothing is lost if one merge overlooks it or
    fails. On later levels, the parts of a failed merge go on to the next level with the others. Returns one merged
    part. If all merges of a later level fail, it returns several parts, which together hold everything; if all of the
    first level fail, or there are no parts, it returns none.
    """
    merged = await _level(parts, shuffled_groups(len(parts), copies, most, rng), merge, 0) if parts else []
    left = [each for each, _ in merged if each is not None]
    level = 1
    while len(left) > 1:
        merged = await _level(left, neighbour_groups(len(left), most), merge, level)
        before = len(left)
        left = [part for each, group in merged for part in (group if each is None else [each])]
        if len(left) == before:
            break
        level += 1
    return left


async def _level(
    parts: Sequence[T], groups: Sequence[Group], merge: Merge[T], level: int
) -> list[tuple[T | None, Sequence[T]]]:
    """For each group, the result of its merge (None if it failed) and the group's parts."""
    grouped = [[parts[position] for position in group] for group in groups]
    jobs = [partial(_merged, group, merge, f"{level}.{place}") for place, group in enumerate(grouped)]
    return list(zip(await run_all(jobs), grouped, strict=True))


async def _merged(parts: Sequence[T], merge: Merge[T], name: str) -> T | None:
    return parts[0] if len(parts) == 1 else await merge(parts, name)


def shuffled_groups(count: int, copies: int, most: int, rng: Random) -> Sequence[Group]:
    """Random groups of at most ``most`` positions, in which every one of ``count`` positions occurs ``copies`` times.

    The sizes of the groups differ by at most one, and no group has a position twice. If all positions fit into one
    group, there is only that group.
    """
    if count <= most:
        return [tuple(range(count))]
    groups: list[Group] = []
    left: list[int] = []
    for size in _sizes(copies * count, most):
        group, left = left[:size], left[size:]
        if len(group) < size:
            # Take the next copy, beginning with positions that the group does not have yet: a group is smaller than a
            # copy.
            copy = rng.sample(range(count), count)
            ahead = [position for position in copy if position not in group][: size - len(group)]
            group, left = group + ahead, [position for position in copy if position not in ahead]
        groups.append(tuple(group))
    return groups


def neighbour_groups(count: int, most: int) -> Sequence[Group]:
    """``count`` positions in order, in groups of at most ``most``. The sizes of the groups differ by at most one."""
    groups: list[Group] = []
    start = 0
    for size in _sizes(count, most):
        groups.append(tuple(range(start, start + size)))
        start += size
    return groups


def _sizes(total: int, most: int) -> Sequence[int]:
    parts = -(-total // most)
    size, larger = divmod(total, parts)
    return [size + 1] * larger + [size] * (parts - larger)
