"""Which training examples each proposal is made from."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, strategies as st

from flowevolve.policies.batching import EpochBatches


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 4))
def test_batches_use_all_ids_alike_and_never_repeat_within_an_epoch(ids: int, size: int, epochs: int) -> None:
    names = [f"e{n}" for n in range(ids)]
    batches = EpochBatches(names, size, Random)
    per_epoch = -(-ids // size)
    drawn = [batches.batch(n) for n in range(per_epoch * epochs)]
    assert all(len(batch) == size for batch in drawn)
    used = Counter(name for batch in drawn for name in batch)
    assert set(used) == set(names)
    assert max(used.values()) - min(used.values()) <= max(1, -(-size // ids))
    again = EpochBatches(names, size, Random)
    assert again.batch(per_epoch * epochs - 1) == drawn[-1]


def test_every_epoch_is_in_an_order_of_its_own() -> None:
    names = [f"e{n}" for n in range(30)]
    batches = EpochBatches(names, 3, Random)
    epochs = [[name for n in range(10) for name in batches.batch(10 * epoch + n)] for epoch in range(3)]
    assert all(sorted(epoch) == sorted(names) for epoch in epochs)
    assert len({tuple(names), *map(tuple, epochs)}) == 4
