"""JSON as models write it: with comments, surplus commas, single quotes, bare keys, and the words of Python.

Only mistakes that leave a single meaning are forgiven. A text that breaks off, or whose strings can't be told apart, is
refused.
"""

from __future__ import annotations

import json
import re

from flowevolve._util.json_types import JSON

_DECODER = json.JSONDecoder(strict=False)
"""Not strict, as models write line breaks into strings without escaping them."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)+", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_WORDS: dict[str, JSON] = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
    "null": None,
    "None": None,
    "NULL": None,
    "undefined": None,
    "NaN": None,
    "nan": None,
    "NAN": None,
    "Infinity": None,
    "inf": None,
}
"""Numbers that JSON does not have, such as NaN, are read as null."""
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_STOPS = {mark: re.compile(rf"[{mark}\\\\]") for mark in _QUOTES.values()}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": ""}
_AFTER = re.compile(r"""\s*(?:[,:}\])+]|//|/\*|\#|\Z)|[ \t]*\n\s*["'{\[]""")
"""What can follow a string; a quotation mark that anything else follows is part of the string."""
_JOINED = re.compile(r"""\s*\+\s*["'“‘]""")
_AFTER_KEY = re.compile(r"\s*:")
_DEEPEST = 200


class BadJSONError(ValueError):
    """A text that can't be read as JSON. ``ended``: the text ends too early; ``too_deep``: it is nested too deeply."""

    def __init__(self, message: str, *, ended: bool = False, too_deep: bool = False) -> None:
        super().__init__(message)
        self.ended = ended
        self.too_deep = too_deep


def decoded(text: str, place: int = 0, *, lenient: bool = True) -> tuple[JSON, int]:
    """The value that begins at ``place``, and the place after it.

    A lone surrogate, which JSON can express and UTF-8 can't, is read as U+FFFD.

    Raises:
        BadJSONError: if there is none.
    """
    try:
        found, end = _DECODER.raw_decode(text, place)
    except RecursionError as error:
        raise BadJSONError("it is nested too deep", too_deep=True) from error
    except ValueError as error:
        if not lenient:
            raise BadJSONError(str(error)) from error
        found, end = _Lenient(text, place).read()
    written = json.dumps(found, ensure_ascii=False)
    if _SURROGATE.search(written) or "NaN" in written or "Infinity" in written:
        found = json.loads(_SURROGATE.sub("\ufffd", written), parse_constant=lambda _: None)
    return found, end


class _Lenient:
    def __init__(self, text: str, place: int) -> None:
        self._text = text
        self._place = place

    def read(self) -> tuple[JSON, int]:
        value = self._value(0)
        return value, self._place

    def _value(self, depth: int) -> JSON:
        if depth > _DEEPEST:
            raise BadJSONError("it is nested too deep", too_deep=True)
        match self._peek():
            case "{":
                return self._object(depth)
            case "[":
                return self._items("]", depth)
            case "(":
                return self._items(")", depth)
            case mark if mark in _QUOTES:
                return self._strings()
        number = _NUMBER.match(self._text, self._place)
        if number is not None:
            self._place = number.end()
            return _number(number[0])
        signed = self._text[self._place : self._place + 1] in "+-"
        word = _WORD.match(self._text, self._place + signed)
        if word is None or word[0] not in _WORDS:
            raise BadJSONError(f"no value begins with {self._text[self._place : self._place + 12]!r}")
        self._place = word.end()
        return _WORDS[word[0]]

    def _object(self, depth: int) -> JSON:
        found: dict[str, JSON] = {}
        self._place += 1
        while self._peek() != "}":
            key = self._key()
            if self._peek() != ":":
                raise BadJSONError(f"the key {key[:40]!r} has no value")
            self._place += 1
            found[key] = self._value(depth + 1)
            self._comma("}")
        self._place += 1
        return found

    def _items(self, end: str, depth: int) -> JSON:
        found: list[JSON] = []
        self._place += 1
        while self._peek() != end:
            found.append(self._value(depth + 1))
            self._comma(end)
        self._place += 1
        return found

    def _comma(self, end: str) -> None:
        """Go past a comma. It may be left out between values on lines of their own."""
        before = self._place
        mark = self._peek()
        if mark == ",":
            self._place += 1
        elif mark != end and "\n" not in self._text[before : self._place]:
            raise BadJSONError(f"there is neither a comma nor {end!r}")

    def _key(self) -> str:
        if self._peek() in _QUOTES:
            return self._string(key=True)
        word = _WORD.match(self._text, self._place) or _NUMBER.match(self._text, self._place)
        if word is None:
            raise BadJSONError(f"no key begins with {self._text[self._place : self._place + 12]!r}")
        self._place = word.end()
        return word[0]

    def _strings(self) -> str:
        """A string, or several that are joined by ``+``."""
        found = self._string()
        while joined := _JOINED.match(self._text, self._place):
            self._place = joined.end() - 1
            found += self._string()
        return found

    def _string(self, *, key: bool = False) -> str:
        text, start = self._text, self._place
        mark = _QUOTES[text[start]]
        if text.startswith(mark * 3, start):
            return self._long_string(mark * 3)
        parts: list[str] = []
        place = start + 1
        stops = _STOPS[mark]
        while stop := stops.search(text, place):
            parts.append(text[place : stop.start()])
            place = stop.start()
            each = text[place]
            if each == mark and (_AFTER_KEY if key else _AFTER).match(text, place + 1):
                self._place = place + 1
                return "".join(parts)
            if each == "\\":
                escaped, place = _escaped(text, place)
                parts.append(escaped)
            else:
                parts.append(each)
                place += 1
        raise BadJSONError("a string has no end", ended=True)

    def _long_string(self, mark: str) -> str:
        end = self._text.find(mark, self._place + 3)
        if end < 0:
            raise BadJSONError("a string has no end", ended=True)
        found = self._text[self._place + 3 : end]
        self._place = end + 3
        return found

    def _peek(self) -> str:
        space = _SPACE.match(self._text, self._place)
        if space is not None:
            self._place = space.end()
        if self._place < len(self._text):
            return self._text[self._place]
        raise BadJSONError("it breaks off", ended=True)


def _escaped(text: str, place: int) -> tuple[str, int]:
    """What a backslash and the characters after it stand for, and the place after these.

    A backslash that means nothing in JSON stands for itself, as in LaTeX.
    """
    following = text[place + 1 : place + 2]
    if following == "u" and re.fullmatch("[0-9a-fA-F]{4}", text[place + 2 : place + 6]):
        return chr(int(text[place + 2 : place + 6], 16)), place + 6
    if following in _ESCAPES:
        return _ESCAPES[following], place + 2
    return (following, place + 2) if following and following in "\"'\\/“”‘’" else ("\\", place + 1)


def _number(text: str) -> JSON:
    plain = text.replace("_", "").lstrip("+")
    if "x" in plain.lower():
        return int(plain, 16)
    try:
        return int(plain) if re.fullmatch(r"-?\d+", plain) else float(plain)
    except ValueError:
        raise BadJSONError("a number is too long") from None
