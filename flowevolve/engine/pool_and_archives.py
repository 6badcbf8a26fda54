"""The pool of a run, the archives over it, and the best score."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.core.algorithm import Algorithm
from flowevolve.core.item_ids import ItemId
from flowevolve.core.pool import Change, Pool, Update


class PoolAndArchives:
    """A run's pool, the algorithm's archives over it, and the best score so far."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.pool = Pool(algorithm.pools)
        self.best_score: float | None = None
        self.proposals_at_gain = 0
        """How many proposals had been made when the best score last rose."""
        self._archives = algorithm.archives

    def commit(self, changes: Sequence[Change], item: ItemId, time: float) -> Update:
        """Apply all changes, or none, and tell the archives."""
        update = self.pool.commit(changes, cause=item, time=time)
        for archive in self._archives:
            archive.apply(update)
        return update

    def note_best(self, score: float | None, proposals: int) -> bool:
        """Note the best score after a commit, and the number of proposals by then; returns whether it rose."""
        before, self.best_score = self.best_score, score
        improved = score is not None and (before is None or score > before)
        if improved:
            self.proposals_at_gain = proposals
        return improved
