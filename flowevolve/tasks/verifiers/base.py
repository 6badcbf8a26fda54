"""The base of all verifiers: their type, and functions that split answers and read the parameters of constraints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON

Kwargs = Mapping[str, JSON]
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|[A-Z])\.$")
_SENTENCE_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)|[。！？]")


@dataclass(frozen=True, slots=True)
class Verifier:
    """One kind of constraint, named as in IFEval or IFBench (``group:name``).

    ``check(response, kwargs)`` says whether the response meets it. ``describe(kwargs)`` is an imperative sentence that
    tells a model what to do ("Do not use commas."). It names every parameter, so that it is enough to meet the
    constraint.
    """

    id: str
    check: Callable[[str, Kwargs], bool]
    describe: Callable[[Kwargs], str]


def words(text: str) -> list[str]:
    """The words of a text: runs of letters and digits, with apostrophes and hyphens inside."""
    return _WORD.findall(text)


def sentences(text: str) -> list[str]:
    """The sentences of a text. Line breaks end a sentence, and so do end marks that don't belong to an abbreviation."""
    found: list[str] = []
    for line in text.splitlines():
        start = 0
        for mark in _SENTENCE_END.finditer(line):
            if not _ABBREVIATION.search(line[start : mark.end()]):
                found.append(line[start : mark.end()].strip())
                start = mark.end()
        found.append(line[start:].strip())
    return [sentence for sentence in found if _WORD.search(sentence)]


def paragraphs(text: str) -> list[str]:
    """The parts of a text between blank lines."""
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def contains_word(text: str, word: str) -> bool:
    """Whether the word or phrase occurs in the text on its own, in upper or lower case."""
    return count_word(text, word) > 0


def count_word(text: str, word: str) -> int:
    """How often the word or phrase occurs in the text on its own, in upper or lower case."""
    if text.isascii() and word.isascii() and word.lower() not in text.lower():
        return 0  # most calls end here, at a tenth of the cost
    return len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE))


def integer(kwargs: Kwargs, name: str) -> int:
    """Read a parameter that is a whole number.

    Raises:
        InputError: if it is missing or not a number.
    """
    value = kwargs.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InputError(f"constraint parameter {name!r} is {value!r}, but has to be a number")
    return int(value)


def string(kwargs: Kwargs, name: str) -> str:
    """Read a parameter that is a text.

    Raises:
        InputError: if it is missing or not a text.
    """
    value = kwargs.get(name)
    if not isinstance(value, str):
        raise InputError(f"constraint parameter {name!r} is {value!r}, but has to be a text")
    return value


def strings(kwargs: Kwargs, name: str) -> list[str]:
    """Read a parameter that is a list of texts.

    Raises:
        InputError: if it is missing or not a list of texts.
    """
    value = kwargs.get(name)
    if not isinstance(value, list):
        raise InputError(f"constraint parameter {name!r} is {value!r}, but has to be a list of texts")
    return [str(each) for each in value]


def holds(count: int, relation: str, limit: int) -> bool:
    """Whether ``count`` has the relation 'at least' or 'less than' to a limit. The data has no other relations.

    Raises:
        InputError: for any other relation.
    """
    if relation not in ("at least", "less than"):
        raise InputError(f"constraint relation is {relation!r}, but has to be 'at least' or 'less than'")
    return count >= limit if relation == "at least" else count < limit


def quoted_list(items: Sequence[str]) -> str:
    """The items in double quotation marks, separated by commas."""
    return ", ".join(f'"{item}"' for item in items)
