"""Which training examples each proposal is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random


class EpochBatches:
    """Minibatches from epoch-wise shuffles (GEPA's default sampler).

    Each epoch is a shuffle of all ids, padded to a multiple of ``size`` with the ids that were used least for padding
    so far. Batch ``n`` depends only on ``n`` and the generators, so concurrent proposals never draw the same batch
    twice.
    """

    def __init__(self, ids: Sequence[str], size: int, generator: Callable[[int], Random]) -> None:
        self._ids = list(ids)
        self._size = size
        self._generator = generator
        self._epochs: list[list[str]] = []
        self._padded: Counter[str] = Counter()
        """How often each id was drawn again to fill up an epoch."""

    def batch(self, ordinal: int) -> tuple[str, ...]:
        """The ids of the ``ordinal``-th batch, counted from 0."""
        per_epoch = -(-len(self._ids) // self._size)
        epoch, place = divmod(ordinal, per_epoch)
        while len(self._epochs) <= epoch:
            self._epochs.append(self._shuffled(len(self._epochs)))
        ids = self._epochs[epoch]
        return tuple(ids[place * self._size : (place + 1) * self._size])

    def _shuffled(self, epoch: int) -> list[str]:
        ids = list(self._ids)
        self._generator(epoch).shuffle(ids)
        while len(ids) % self._size:
            least = min(self._ids, key=lambda name: self._padded[name])
            ids.append(least)
            self._padded[least] += 1
        return ids
