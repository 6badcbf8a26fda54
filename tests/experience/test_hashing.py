"""Simulated embeddings: texts that share words are close, and nothing else matters."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from flowevolve.experience.hashing import DIMENSIONS, hashed_embedding


def closeness(first: str, second: str) -> float:
    return sum(a * b for a, b in zip(hashed_embedding(first), hashed_embedding(second), strict=True))


@given(st.text())
def test_vectors_have_one_length(text: str) -> None:
    vector = hashed_embedding(text)
    assert len(vector) == DIMENSIONS
    assert math.hypot(*vector) == pytest.approx(1)


def test_shared_words_bring_texts_together() -> None:
    near = closeness("Answer in one short sentence.", "Answer in one long sentence.")
    far = closeness("Answer in one short sentence.", "Numbers before letters, always!")
    assert closeness("Say it twice", "say it, twice!") == pytest.approx(1)
    assert near > 0.4 > far + 0.2


def test_vectors_are_the_same_in_every_process() -> None:
    vector = hashed_embedding("hello")
    assert [(place, value) for place, value in enumerate(vector) if value] == [(62, 1.0)]
