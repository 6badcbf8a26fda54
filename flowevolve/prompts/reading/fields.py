"""Named fields of replies: ``Name: value`` in any decoration, ``[[ ## name ## ]]``, and ``<name>value</name>``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

_DECORATION = r"[ \t>*_#`~•+–-]*(?:\d{1,3}[.)][ \t*_]*)?"
CLOSES_NAME = r"(?:[*_]{2,}|[*_](?=[ \t]|$))?"
"""What may close the emphasis of a name behind its colon; a single mark in front of a word opens that of the value."""
_MARKED = re.compile(r"^[ \t]*\[\[[ \t]*##[ \t]*(\w+)[ \t]*##[ \t]*\]\]", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*(?:[-*+•–][ \t]+|\(?\d{1,3}[.):][ \t]+|[a-z][.)][ \t]+)(.*)$")
_NEXT_FIELD = re.compile(r"^[ \t>*_#]*[A-Z][\w ]{0,30}[*_]*:[ \t*_]*")
_NEXT_PART = re.compile(r"^[ \t>]*(?:#|(?:\*\*|__)[^*_\n]*(?::(?:\*\*|__)|(?:\*\*|__):)[ \t]*$|[-*_=]{3,}[ \t]*$)")
"""A heading, a name alone in bold letters, or a rule."""
_UNDERLINE = re.compile(r"^[ \t]*={3,}[ \t]*$")


@cache
def _line(names: str) -> re.Pattern[str]:
    return re.compile(
        rf"^{_DECORATION}(?:the[ \t]+)?(?:{names})[ \t]*#?\d{{0,3}}[ \t]*[*_`]*[ \t]*"
        rf"(?:[:=：]|[-–—]+[ \t]|\bis:?[ \t])[ \t]*{CLOSES_NAME}[ \t]*(.*)$",
        re.IGNORECASE | re.MULTILINE,
    )


@cache
def _tag(names: str) -> re.Pattern[str]:
    return re.compile(
        rf"<(?P<name>{names})(?:[ \t][^<>\n]*)?>(?P<value>(?:(?!<(?P=name)[ \t>]).)*?)"
        rf"(?P<end></(?P=name)[ \t]*>|\Z)",
        re.IGNORECASE | re.DOTALL,
    )


def lines_named(text: str, *names: str) -> list[str]:
    """The rest of each line that begins with one of the names and a colon, whatever decorates it or numbers it."""
    return [plain(value) for value in _line("|".join(map(re.escape, names))).findall(text)]


def tagged(text: str, *names: str) -> list[str]:
    """The text between each pair of tags of one of the names; if no pair is complete, what follows the last tag."""
    found = list(_tag("|".join(map(re.escape, names))).finditer(text))
    whole = [match for match in found if match["end"]]
    return [match["value"].strip() for match in whole or found[-1:]]


def marked_fields(text: str) -> Mapping[str, str]:
    """The fields between ``[[ ## name ## ]]`` lines, as DSPy asks for them; the last one of each name."""
    found: dict[str, str] = {}
    marks = list(_MARKED.finditer(text))
    for place, mark in enumerate(marks):
        end = marks[place + 1].start() if place + 1 < len(marks) else len(text)
        found[mark[1].lower()] = text[mark.end() : end].strip()
    found.pop("completed", None)
    return found


def items(text: str) -> list[str]:
    """The items of a list, bulleted or numbered. Indented lines belong to the item above them."""
    found: list[str] = []
    for line in text.split("\n"):
        item = _ITEM.match(line)
        if item is not None and not (found and line[:2] == "  " and not found[-1]):
            found.append(item[1].strip())
        elif found and line.strip() and line[:1] in " \t":
            found[-1] = f"{found[-1]} {line.strip()}"
    return [each for each in found if each]


def listed_under(text: str, *names: str) -> list[str]:
    """The items of the lists that follow a line which has nothing but one of the names, such as ``Lessons:``."""
    pattern = _heading("|".join(map(re.escape, names)))
    lines = text.split("\n")
    places = [place for place, line in enumerate(lines) if pattern.match(line)]
    ends = [*places[1:], len(lines)]
    return [
        item
        for place, end in zip(places, ends, strict=False)
        for item in items("\n".join(_until_next_field(lines[place + 1 : end])))
    ]


def paragraphs_under(text: str, names: Sequence[str], others: Sequence[str]) -> list[str]:
    """The paragraph below each line that has nothing but one of the names, as one line.

    It ends at the next heading, and at the next field whose name is one of ``names`` or ``others``.
    """
    heading = _heading("|".join(map(re.escape, names)))
    field = _line("|".join(map(re.escape, (*names, *others))))
    found: list[list[str]] = []
    below = False
    for line in text.split("\n"):
        if heading.match(line):
            found.append([])
            below = True
        elif below and not found[-1] and _UNDERLINE.match(line):
            continue
        elif field.match(line) or _NEXT_PART.match(line):
            below = False
        elif below and line.strip(" \t`~") and not (found[-1] and _NEXT_FIELD.match(line)):
            found[-1].append(line.strip())
        else:
            below = below and not found[-1]
    return [plain(" ".join(lines)) for lines in found if lines]


@cache
def _heading(names: str) -> re.Pattern[str]:
    return re.compile(
        rf"^{_DECORATION}(?:the[ \t]+)?(?:{names})[ \t]*#?\d{{0,3}}[ \t*_]*[:：]?[ \t*_]*$", re.IGNORECASE
    )


def _until_next_field(lines: list[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if _ITEM.match(line) or not line.strip() or line[:1] in " \t":
            kept.append(line)
        elif _NEXT_FIELD.match(line) or kept:
            break
    return kept


def plain(value: str) -> str:
    """A value without the marks of emphasis, code or quotation around it."""
    value = value.strip()
    for mark in ("**", "__", "`", '"', "*", "_"):
        if (
            len(value) > 2 * len(mark)
            and value.startswith(mark)
            and value.endswith(mark)
            and mark not in value[len(mark) : -len(mark)]
        ):
            return value[len(mark) : -len(mark)].strip()
    return value.removesuffix("**").rstrip()
