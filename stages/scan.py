"""Merging many things into one by calls of which none gets too many: the reduce of Combee (arXiv 2604.04247)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from flowevolve.concurrency import run_all
from flowevolve.policies.scan import neighbour_groups, shuffled_groups

T = TypeVar("T")
Merge = Callable[[Sequence[T], str], Awaitable[T | None]]
"""Merges two or more; the text names the merge within its scan (``0.3``: level and place). None: nothing came of it."""


async def scan(parts: Sequence[T], merge: Merge[T], *, copies: int, most: int, rng: Random) -> T | None:
    """Merge all in a balanced tree of groups of at most ``most``, level by level, the groups of a level side by side.

    On the first level every part is in ``copies`` groups drawn at random, so that what one merge overlooks, or a merge
    of which nothing came, is not lost. None if nothing came of any merge, or there are no parts.
    """
    groups = shuffled_groups(len(parts), copies, most, rng)
    level = 0
    while parts:
        jobs = [
            partial(_merged, [parts[position] for position in group], merge, f"{level}.{place}")
            for place, group in enumerate(groups)
        ]
        parts = [merged for merged in await run_all(jobs) if merged is not None]
        if len(parts) == 1:
            return parts[0]
        groups = neighbour_groups(len(parts), most) if parts else []
        level += 1
    return None


async def _merged(parts: Sequence[T], merge: Merge[T], name: str) -> T | None:
    return parts[0] if len(parts) == 1 else await merge(parts, name)
