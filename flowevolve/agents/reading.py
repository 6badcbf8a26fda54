"""Reading JSON out of replies, and the texts and numbers in it.

All raise `UnparsableReplyError`, which says what is missing. Half of a surrogate pair, which JSON can name and UTF-8
can't hold, is read as U+FFFD: what is read here is shown in prompts and kept in stores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from flowevolve.llm.types import JSON, UnparsableReplyError
from flowevolve.prompts import labelled_blocks

Word = TypeVar("Word", bound=str)

_DECODER = json.JSONDecoder(strict=False)
"""Models write line breaks into strings as they are."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json(reply: str) -> dict[str, JSON] | list[JSON]:
    """The JSON object or array in a reply: the last fenced block that is one, or the longest one with prose around it.

    Raises:
        UnparsableReplyError: if there is none.
    """
    for _, text in reversed(labelled_blocks(reply)):
        found, end = _decoded(text.strip(), 0)
        if found is not None and end == len(text.strip()):
            return found
    found = _longest(reply)
    if found is None:
        raise UnparsableReplyError("no JSON object or array in the reply")
    return found


def read_object(reply: str) -> dict[str, JSON]:
    """As `read_json`, for a reply that has to be an object.

    Raises:
        UnparsableReplyError: if it is not.
    """
    found = read_json(reply)
    if not isinstance(found, dict):
        raise UnparsableReplyError("the reply's JSON is an array; an object was asked for")
    return found


def read_array(reply: str) -> list[JSON]:
    """As `read_json`, for a reply that has to be an array; one that is the only value of an object counts.

    Raises:
        UnparsableReplyError: if it is not.
    """
    found = read_json(reply)
    if isinstance(found, dict):
        values = list(found.values())
        if len(values) != 1 or not isinstance(values[0], list):
            raise UnparsableReplyError("the reply's JSON is an object; an array was asked for")
        return values[0]
    return found


def objects(values: object, name: str) -> list[dict[str, JSON]]:
    """The objects in the array ``values``; what else is in it is passed over. ``name`` is for the error.

    Raises:
        UnparsableReplyError: if it is no array.
    """
    if not isinstance(values, list):
        raise UnparsableReplyError(f"{name!r} is missing or no array")
    return [value for value in values if isinstance(value, dict)]


def text_of(data: Mapping[str, JSON], name: str) -> str:
    """The text under this name, without space around it.

    Raises:
        UnparsableReplyError: if there is none, or it is empty.
    """
    value = data.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UnparsableReplyError(f"{name!r} is missing or no text")
    return value.strip()


def texts(values: object, name: str) -> tuple[str, ...]:
    """The texts in the array ``values``, each once, without space around them; others are passed over.

    Raises:
        UnparsableReplyError: if it is no array, or there is no text in it.
    """
    if not isinstance(values, list):
        raise UnparsableReplyError(f"{name!r} is missing or no array")
    found = tuple(dict.fromkeys(value.strip() for value in values if isinstance(value, str) and value.strip()))
    if not found:
        raise UnparsableReplyError(f"no text among {name!r}")
    return found


def word_of(data: Mapping[str, JSON], name: str, known: Sequence[Word]) -> Word:
    """The word under this name, which has to be one of the known ones, in whatever case.

    Raises:
        UnparsableReplyError: if it is missing or another one.
    """
    said = str(data.get(name, "")).strip().lower()
    for word in known:
        if word == said:
            return word
    raise UnparsableReplyError(f"{name!r} is {said!r}; it has to be one of {', '.join(known)}")


def _longest(text: str) -> dict[str, JSON] | list[JSON] | None:
    """The longest object or array in a text; what is inside of another is a part of that."""
    longest: dict[str, JSON] | list[JSON] | None = None
    place = length = 0
    while place < len(text):
        found, end = _decoded(text, place)
        if found is not None and end - place > length:
            longest, length = found, end - place
        place = end
    return longest


def _decoded(text: str, place: int) -> tuple[dict[str, JSON] | list[JSON] | None, int]:
    """The object or array that begins here, if one does, and where to look on."""
    if text[place : place + 1] not in ("[", "{"):
        return None, place + 1
    try:
        found, end = _DECODER.raw_decode(text, place)
        written = json.dumps(found, ensure_ascii=False)
        if _SURROGATE.search(written):
            found = json.loads(_SURROGATE.sub("\ufffd", written))
    except (ValueError, RecursionError):
        return None, place + 1
    return found, end
