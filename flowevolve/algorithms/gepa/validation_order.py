"""The order in which validation examples are run, so that the first ones tell the most (FlashEvolve §3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowevolve.core.pool import Add, Move, Update


class ValidationOrder:
    """Examples passed ``window`` times in a row go behind all others, and come back when they are failed again.

    Every candidate counts that was confirmed, or revoked with all its scores. Candidates that were rejected without
    ever being in the pool do not count, as the pool knows nothing of them. An example is passed with a score of at
    least ``passing``. The order is a function of the log.
    """

    def __init__(self, example_ids: Sequence[str], window: int = 3, passing: float = 1.0) -> None:
        self._ids = tuple(example_ids)
        self._window = window
        self._passing = passing
        self._streaks = dict.fromkeys(self._ids, 0)
        self._order = self._ids

    def __call__(self) -> Sequence[str]:
        """The ids in the order in which they should be run now."""
        return self._order

    def apply(self, update: Update) -> None:
        for change in update.changes:
            match change:
                case Add(candidate=candidate, status="confirmed"):
                    self._take(candidate.scores)
                case Move(scores=scores) if scores is not None:
                    self._take(scores)
                case _:
                    pass

    def _take(self, scores: Mapping[str, float]) -> None:
        for name, score in scores.items():
            if name in self._streaks:
                self._streaks[name] = self._streaks[name] + 1 if score >= self._passing else 0
        open_ids = [name for name in self._ids if self._streaks[name] < self._window]
        solved = [name for name in self._ids if self._streaks[name] >= self._window]
        self._order = (*open_ids, *solved)
