"""Comments that people make on candidates and examples during a run, and which work may use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowevolve.core.acts import Comment
from flowevolve.core.item_ids import ItemId


class Comments:
    """All comments, oldest first. The work on an item sees only the comments that were made before it began. Work that
    is begun again after an interruption therefore writes the same prompts, and their replies need not be paid for
    again.
    """

    def __init__(self) -> None:
        self._made: list[Comment] = []
        self._known: dict[ItemId, int] = {}
        """How many comments there were when the work on an item began; only for items with at least one."""

    def load(self, made: Sequence[Comment], known: Mapping[ItemId, int]) -> None:
        """Take over the comments of an interrupted run, and how many of them its interrupted work saw, by item."""
        self._made = list(made)
        self._known = {item: count for item, count in known.items() if count}

    def add(self, comment: Comment) -> None:
        self._made.append(comment)

    def begin(self, item: ItemId) -> None:
        """Note that the work on an item begins."""
        if self._made:
            self._known[item] = len(self._made)

    def end(self, item: ItemId) -> None:
        self._known.pop(item, None)

    def known(self, item: ItemId) -> Sequence[Comment]:
        """The comments that the work on an item may see."""
        return self._made[: self._known.get(item, 0)]
