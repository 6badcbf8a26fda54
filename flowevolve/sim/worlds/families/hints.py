"""Lines by which the agents of the world `families` tell its coder what to try and what to leave."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve.tasks.families.catalog import WAYS

HintWord = Literal["try", "shun", "raise", "lower"]
_LINE = re.compile(r"^\W*(try|shun|raise|lower): *([a-z, ]+)$", re.MULTILINE)
_GOOD = ("try", "raise")
_NUMBERS = frozenset(name for way in WAYS.values() for name in way.best)


@dataclass(frozen=True, slots=True)
class Hints:
    """What the hints of a text amount to, once those that contradict each other have cancelled out."""

    ways: Sequence[str]
    """The ways that more lines say to try than to shun, in the order in which they were named."""
    directions: Mapping[str, int]
    """The numbers that are to rise (1) or to fall (-1), by their names."""


def hint(word: HintWord, names: Sequence[str]) -> str:
    """A line that says to try or to shun ways, or to raise or to lower numbers."""
    return f"{word}: {', '.join(names)}"


def read_hints(text: str) -> Hints:
    said: Counter[str] = Counter()
    for word, names in _LINE.findall(text):
        for name in names.split(","):
            said[name.strip()] += 1 if word in _GOOD else -1
    return Hints(
        [name for name, count in said.items() if name in WAYS and count > 0],
        {name: 1 if count > 0 else -1 for name, count in said.items() if name in _NUMBERS and count},
    )
