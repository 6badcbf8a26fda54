"""JSON by pydantic's writer and reader, which take a third of the time of Python's; these do what the others can't."""

from __future__ import annotations

import json

from pydantic_core import from_json, to_json

from flowevolve._util.json_types import JSON

_python = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_strict = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_text(value: object) -> str:
    """A value of JSON as text, without spaces. Lone surrogates stay as they are, infinities and NaN as in JavaScript.

    Raises:
        TypeError: if it holds something that neither writer knows. Sets, dates and the like are known, and become
            lists and texts.
    """
    try:
        return to_json(value, inf_nan_mode="constants").decode()
    except ValueError:  # there is a lone surrogate in it, or what JSON does not have
        return _python.encode(value)


def strict_json(value: object) -> bytes:
    """A value of JSON as text in UTF-8, without spaces.

    Raises:
        ValueError: if a text has lone surrogates, or a number is infinite or NaN.
        TypeError: as `json_text`.
    """
    try:
        content = to_json(value, inf_nan_mode="constants")
    except ValueError:
        return _strict.encode(value).encode()
    if b"NaN" in content or b"Infinity" in content:  # in a text it may be, as a number not
        return _strict.encode(value).encode()
    return content


def read_json(content: bytes) -> JSON:
    """The value of a JSON text.

    Raises:
        ValueError: if it is not JSON.
        RecursionError: if there are too many lists and objects inside each other.
    """
    value: JSON
    try:
        value = from_json(content)
    except ValueError:  # it has a lone surrogate, begins with a mark of its byte order, is nested deeply, or is no JSON
        value = json.loads(content)
    return value
