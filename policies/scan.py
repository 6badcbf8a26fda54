"""What is merged with what when many texts become one: Combee's augmented shuffle and parallel scan (arXiv 2604.04247).

Everything here is about positions in a sequence, whatever that holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

Group = tuple[int, ...]


def shuffled_groups(count: int, copies: int, most: int, rng: Random) -> Sequence[Group]:
    """Random groups of at most ``most`` positions, in which every one of ``count`` positions occurs ``copies`` times.

    The sizes of groups differ by one at most, and no group has a position twice. If all positions fit into one group,
    there is only that one.
    """
    if count <= most:
        return [tuple(range(count))]
    groups: list[Group] = []
    left: list[int] = []
    for size in _sizes(copies * count, most):
        group, left = left[:size], left[size:]
        if len(group) < size:
            # The next copy, with those ahead that the group does not have yet: it is smaller than a copy.
            copy = rng.sample(range(count), count)
            ahead = [position for position in copy if position not in group][: size - len(group)]
            group, left = group + ahead, [position for position in copy if position not in ahead]
        groups.append(tuple(group))
    return groups


def neighbour_groups(count: int, most: int) -> Sequence[Group]:
    """``count`` positions in order, in groups of at most ``most``. The sizes of groups differ by one at most."""
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
