"""How deep the tests go: ``make test`` runs each in its short form, ``make test-long`` in its long one."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hypothesis import settings

LONG = os.environ.get("FLOWEVOLVE_TESTS") == "long"
SHORT_EXAMPLES, LONG_EXAMPLES = 10, 100
"""Of a property that asks for no number of its own."""
SHORT_CUTS = 6


def examples(most: int) -> settings:
    """So many examples of a costly property; a fifth of them in the short form."""
    return settings(max_examples=most if LONG else max(3, most // 5))


def cuts(facts: Sequence[object], step: int = 1) -> Sequence[int]:
    """After how many of its facts to interrupt a run: at every ``step``, or at a few places evenly spread over it."""
    places = range(1, len(facts), step)
    return places if LONG else places[:: max(1, len(places) // SHORT_CUTS)]
