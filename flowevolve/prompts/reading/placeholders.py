"""Placeholders for a text: dots, or a few words that only say which text should be in their place."""

from __future__ import annotations

import re

from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.prompts.reading.talk import KINDS, NEW

_DOTS = re.compile(r"[\s\"'`*_<(\[]*(?:\.\.|…)[\s\"'`*_>)\].…]*")
_DETERMINERS = r"(?:(?:insert|put|write|place|add|paste)\s+)?(?:(?:the|a|an|one|your|my)\s+)?"
_NEW = rf"(?:(?:{NEW}|whole|full)[\s_-]+)"
_WHAT = rf"(?:{KINDS}|notes?|lessons?|advice|abstract|plan|guidance)(?:\s+text)?"
_IN_BRACKETS = re.compile(
    rf"[<\[]+\s*{_DETERMINERS}{_NEW}*{_WHAT}(?:\s+(?:goes|comes))?(?:\s+here)?[\s.…]*[>\]]+[\s.]*", re.IGNORECASE
)
_HERE = re.compile(rf"{_DETERMINERS}{_NEW}+{_WHAT}(?:\s+(?:goes|comes))?\s+here[\s.…]*", re.IGNORECASE)


def is_placeholder(text: str) -> bool:
    """Whether a text is nothing but dots, or words such as '<new instruction>' or 'The new text goes here.'"""
    return any(pattern.fullmatch(text.strip()) for pattern in (_DOTS, _IN_BRACKETS, _HERE))


def no_placeholder(text: str, name: str) -> str:
    """The text. Raises: UnparsableReplyError if it is a placeholder."""
    if is_placeholder(text):
        raise UnparsableReplyError(f"{name} is a placeholder; the text itself has to stand there", Reason.EMPTY)
    return text
