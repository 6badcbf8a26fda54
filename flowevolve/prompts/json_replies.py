"""Reads JSON out of replies, and the texts, words and objects in it.

All functions raise `UnparsableReplyError`, whose message says what is missing. A lone surrogate, which JSON can express
and UTF-8 can't, is read as U+FFFD, as everything that is read here is shown in prompts and stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from flowevolve._util.json_types import JSON
from flowevolve.core.model import UnparsableReplyError
from flowevolve.prompts.reflection import labelled_blocks

Word = TypeVar("Word", bound=str)

_DECODER = json.JSONDecoder(strict=False)
"""Not strict, as models write line breaks into strings without escaping them."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json(reply: str) -> dict[str, JSON] | list[JSON]:
    """The JSON object or array in a reply: the last fenced block that is one, else the longest one in the text.

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
    """As `read_json`, for a reply that has to be an array, which may be the only value of an object.

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
    """The objects in the array ``values``; other elements are ignored. ``name`` is for the error.

    Raises:
        UnparsableReplyError: if it is no array.
    """
    if not isinstance(values, list):
        raise UnparsableReplyError(f"{name!r} is missing or no array")
    return [value for value in values if isinstance(value, dict)]


def text_of(data: Mapping[str, JSON], name: str) -> str:
    """The text under this name, without surrounding whitespace.

    Raises:
        UnparsableReplyError: if there is none, or it is empty.
    """
    value = data.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UnparsableReplyError(f"{name!r} is missing or no text")
    return value.strip()


def texts(values: object, name: str) -> tuple[str, ...]:
    """The texts in the array ``values``, each once and without surrounding whitespace; other elements are ignored.

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
    """The word under this name, which has to be one of the known ones. Case does not matter.

    Raises:
        UnparsableReplyError: if it is missing or not known.
    """
    written = str(data.get(name, "")).strip().lower()
    for word in known:
        if word == written:
            return word
    raise UnparsableReplyError(f"{name!r} is {written!r}; it has to be one of {', '.join(known)}")


def _longest(text: str) -> dict[str, JSON] | list[JSON] | None:
    """The longest object or array in a text that is not inside another one."""
    longest: dict[str, JSON] | list[JSON] | None = None
    place = length = 0
    while place < len(text):
        found, end = _decoded(text, place)
        if found is not None and end - place > length:
            longest, length = found, end - place
        place = end
    return longest


def _decoded(text: str, place: int) -> tuple[dict[str, JSON] | list[JSON] | None, int]:
    """The object or array that begins at ``place``, if there is one, and the place from which to search on.

    After something that is nested too deep nothing is searched for: it would be tried at each of its brackets.
    """
    if text[place : place + 1] not in ("[", "{"):
        return None, place + 1
    try:
        found, end = _DECODER.raw_decode(text, place)
        written = json.dumps(found, ensure_ascii=False)
        if _SURROGATE.search(written):
            found = json.loads(_SURROGATE.sub("\ufffd", written))
    except RecursionError:
        return None, len(text)
    except ValueError:
        return None, place + 1
    return found, end
