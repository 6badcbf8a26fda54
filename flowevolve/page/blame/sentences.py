"""Cutting a text into sentences, or a program into lines, and saying which of them say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_LINE = re.compile(r"[^\n]+")
_END = re.compile(r"[.!?…]+[\"'”’»)\]*_`]*(?=\s)|[。！？]+[”’」』）]*")
"""Where a sentence may end. What follows a full stop decides whether it does."""
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|cf|vs|etc|approx|no|fig|dr|mr|mrs|ms|prof|st)|^\W*(?:\d{1,3}|[a-z]))\.$", re.IGNORECASE
)
"""What ends with a full stop but does not end a sentence: an abbreviation, or the number of a list item."""
_MARKER = re.compile(r"\s*(?:[-*+•>#]+|\(?(?:\d{1,3}|[a-z])[.)])\s+")
"""What a list item, a quotation or a heading begins with."""
_WORD = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff]+|[\u3040-\u30ff\u3400-\u9fff]")
"""A word, or a single letter of a script that has no blanks between words."""


class Span(NamedTuple):
    """A part of a text, from the character ``start`` up to ``end``, without the blanks around it."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, or a line of a program. Those that say the same have the same ``key``: lines, apart from the blanks
    around them; sentences of prose, also apart from capitals, punctuation and the mark of a list item.
    """

    span: Span
    key: str


def cut_lines(text: str) -> Iterator[Sentence]:
    """The lines of a program that are not empty."""
    for span in _spans_of_lines(text):
        yield Sentence(span, text[span.start : span.end])


def cut_sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a prose text. A list item, a heading or anything else on a line of its own is one sentence or
    several. A sentence that continues on the next line, which then begins with a lower-case letter, is not cut there.
    """
    for paragraph in _paragraphs(text):
        for span in _spans_of_sentences(text, paragraph):
            yield Sentence(span, _key(text[span.start : span.end]))


@lru_cache(maxsize=100_000)
def _key(said: str) -> str:
    return " ".join(words(_MARKER.sub("", said, count=1))) or said


def words(text: str) -> list[str]:
    """The words of a text in lower case, in their order."""
    return _WORD.findall(text.casefold())


def _spans_of_lines(text: str) -> Iterator[Span]:
    for line in _LINE.finditer(text):
        span = _strip(text, line.start(), line.end())
        if span is not None:
            yield span


def _paragraphs(text: str) -> Iterator[Span]:
    """The lines of a text. Lines that one sentence runs through are joined."""
    open_span: Span | None = None
    for span in _spans_of_lines(text):
        if open_span is None:
            open_span = span
        elif _goes_on(text, open_span, span):
            open_span = Span(open_span.start, span.end)
        else:
            yield open_span
            open_span = span
    if open_span is not None:
        yield open_span


def _goes_on(text: str, before: Span, line: Span) -> bool:
    between = text[before.end : line.start]
    return between.count("\n") == 1 and text[line.start].islower() and text[before.end - 1] not in ".!?…:;。！？"


def _spans_of_sentences(text: str, paragraph: Span) -> Iterator[Span]:
    begin = paragraph.start
    for end in _END.finditer(text, *paragraph):
        if _NO_END.search(text[begin : end.end()]) or _next_letter(text, end.end(), paragraph.end).islower():
            continue
        span = _strip(text, begin, end.end())
        if span is not None:
            yield span
        begin = end.end()
    rest = _strip(text, begin, paragraph.end)
    if rest is not None:
        yield rest


def _next_letter(text: str, start: int, end: int) -> str:
    for place in range(start, end):
        if not text[place].isspace():
            return text[place]
    return ""


def _strip(text: str, start: int, end: int) -> Span | None:
    """The span without blanks at its ends; None if nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Span(start, end) if start < end else None
