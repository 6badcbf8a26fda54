"""Remarks that stand for code which was left out, such as ``# ... rest of the code unchanged``."""

from __future__ import annotations

import re

_DOTS = r"(?:\.{3}|…)"
_THINGS = (
    r"(?:code|program|functions?|methods?|class(?:es)?|implementation|logic|file|body|imports|helpers?|definitions?|"
    r"lines|content)"
)
_REST = r"(?:the )?(?:rest|remainder) of (?:the |your |this )?(?:\w+ )?|(?:the )?remaining "
_LEFT = (
    r"(?:the )?(?:rest|remainder) of (?:the |your |this )?(?:\w+ )?"
    r"|(?:the )?(?:remaining|existing|previous|original|other|unchanged) (?:\w+ )?"
)
_SAME = r"(?:unchanged|the same|same as (?:before|above)|as before|as above|here|goes here|omitted(?: for brevity)?)"
_ELIDED = re.compile(
    rf"^\s*(?:#|//|/\*|<!--|--)+\s*[\[(]?(?:{_DOTS}[\s.…\])*/]*$"
    rf"|{_DOTS}\s*[\[(]?\s*(?:{_LEFT}|{_THINGS}|{_SAME}|unchanged|same|keep|omitted)\b"
    rf"|(?:{_LEFT}){_THINGS}\s*(?:{_DOTS}|(?:remains?|stays?|is|are|continues?)?\s*{_SAME})[\s.\])*/]*$"
    rf"|(?:{_REST}){_THINGS}[\s.\])*/]*$"
    rf"|(?:the )?(?:same|unchanged) {_THINGS}? ?(?:as (?:before|above)|{_DOTS})"
    rf"|{_THINGS} (?:remains?|stays?|is|are) (?:unchanged|the same)\b)",
    re.IGNORECASE,
)


def elision(text: str, known: str = "") -> str | None:
    """The first line of a text that stands for code which was left out; lines of the ``known`` text are none."""
    lines = {line.strip() for line in known.split("\n")}
    found = (line.strip() for line in text.split("\n") if _ELIDED.match(line))
    return next((line for line in found if line not in lines), None)
