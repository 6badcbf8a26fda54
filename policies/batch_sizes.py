"""How large batches should be, by how long they take: a `flowevolve.policies.gathering.BatchSize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from flowevolve.policies.gathering import PAST, Batch


@dataclass(frozen=True)
class DelayProfile:
    """Combee's controller (arXiv 2604.04247): profiles the delay, and settles where larger batches hardly save any.

    Beyond that point a larger batch only makes each merge harder. The sizes tried are 1, 2, 4, … and at last ``most``,
    ``repeats`` batches of each, whose median counts. A size is kept if, for each member of a batch, it saves at least
    ``gain`` of what would be saved if a batch took as long as at the size before; else the one before is, for good.
    """

    most: int
    repeats: int = 3
    gain: float = 0.5

    def next(self, past: Sequence[Batch]) -> int:
        if len(past) >= PAST:  # the profile is being forgotten; it was settled long ago
            return max(batch.size for batch in list(past)[PAST // 2 :])
        smaller, delay_before = 0, 0.0
        size = 1
        delays: list[float] = []
        for batch in past:
            if batch.size < size:
                continue  # no more could come: it says little about a whole one
            delays.append(batch.seconds / batch.size)
            if len(delays) < self.repeats:
                continue
            delay = median(delays)
            if smaller and not self._pays(1 - smaller / size, delay_before, delay):
                return smaller
            if size == self.most:
                return size
            smaller, delay_before, delays = size, delay, []
            size = min(2 * size, self.most)
        return size

    def _pays(self, ideal: float, before: float, now: float) -> bool:
        return before - now >= self.gain * ideal * before
