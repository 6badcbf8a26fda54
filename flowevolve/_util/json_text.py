"""JSON by pydantic's writer and reader, which take a third of the time of Python's. Python's do what those can't."""

from __future__ import annotations

import json

from pydantic_core import from_json, to_json

from flowevolve._util.json_types import JSON

_python = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_strict = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_text(value: object) -> str:
    """A JSON value as text, without spaces. Lone surrogates stay as they are; infinities and NaN are as in JavaScript.

    Raises:
        TypeError: if it holds something that neither writer supports. Sets, dates and the like are supported, and
            become lists and texts.
    """
    try:
        return to_json(value, inf_nan_mode="constants").decode()
    except ValueError:  # it has a lone surrogate, or something that JSON does not have
        return _python.encode(value)


def strict_json(value: object) -> bytes:
    """A JSON value as UTF-8 text, without spaces.

    Raises:
        ValueError: if a text has lone surrogates, or a number is infinite or NaN.
        TypeError: as `json_text`.
    """
    try:
        content = to_json(value, inf_nan_mode="constants")
    except ValueError:
        return _strict.encode(value).encode()
    if b"NaN" in content or b"Infinity" in content:  # allowed inside a text, but not as a number
        return _strict.encode(value).encode()
    return content


def read_json(content: bytes) -> JSON:
    """The value of a JSON text.

    Raises:
        ValueError: if it is not JSON.
        RecursionError: if lists and objects are nested too deeply.
    """
    value: JSON
    try:
        value = from_json(content)
    except ValueError:  # it has a lone surrogate, begins with a byte order mark, is nested deeply, or is not JSON
        value = json.loads(content)
    return value
