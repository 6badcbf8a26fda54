"""What people have said of candidates and examples while a run goes on, and which work may know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowevolve.core.acts import Comment
from flowevolve.core.item_ids import ItemId


class Comments:
    """All comments, oldest first. The work on an item knows those that were made before it began, and no others: so
    work that is begun again after an interruption writes the same prompts, and their replies need not be paid again.
    """

    def __init__(self) -> None:
        self._made: list[Comment] = []
        self._known: dict[ItemId, int] = {}
        """How many there were when the work on an item began, where there were any."""

    def load(self, made: Sequence[Comment], known: Mapping[ItemId, int]) -> None:
        """Take over those of an interrupted run, and how many of them its interrupted work knew, by item."""
        self._made = list(made)
        self._known = {item: count for item, count in known.items() if count}

    def add(self, comment: Comment) -> None:
        self._made.append(comment)

    def begin(self, item: ItemId) -> None:
        """The work on an item begins."""
        if self._made:
            self._known[item] = len(self._made)

    def end(self, item: ItemId) -> None:
        self._known.pop(item, None)

    def known(self, item: ItemId) -> Sequence[Comment]:
        """Those that the work on an item knows."""
        return self._made[: self._known.get(item, 0)]
