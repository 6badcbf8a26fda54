"""Reads the name and the idea that a reply may give its program, in lines above the program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.fields import CLOSES_NAME, lines_named, plain
from flowevolve.prompts.reading.json_replies import answer_in

_FIELD = re.compile(
    r"^(?=.*[:：]|[ \t>]*(?:#|\*\*|__))[ \t>*_#`•+–-]*(name|idea)"
    rf"(?:[ \t*_`]*[:：][ \t]*{CLOSES_NAME}[ \t]*(\S.*)?|[ \t*_`]*)$",
    re.IGNORECASE,
)
"""A line with a name and its value or, with a colon or as a heading, with the name of the value on the next line."""
_PROGRAM = re.compile(r"^[ \t]*(?:`{3,}|~{3,}|<{4,}|-{5,}|[*_#>]*(?:SEARCH|FIND|FILE\w*)\b[ \t*_]*:)", re.IGNORECASE)
_LONGEST_NAME = 80
_LONGEST_IDEA = 300


@dataclass(frozen=True, slots=True)
class Description:
    """What a reply says of its program, in one line each; empty where it says nothing."""

    name: str = ""
    idea: str = ""


def read_printed(output: str) -> Description:
    """The last name and the last idea that a program printed."""
    names, ideas = (lines_named(output, key) for key in ("name", "idea"))
    return _description(*(each[-1] if each else "" for each in (names, ideas)))


def _description(name: str, idea: str) -> Description:
    name, idea = (" ".join(text.split()) for text in (name, idea))
    return Description(name[:_LONGEST_NAME], idea[:_LONGEST_IDEA])


def read_description(reply: str) -> tuple[Description, str]:
    """The name and the idea in a reply, and the reply without these lines; unchanged if it has none.

    They are looked for above the first fence or edit. In a reply without either they count only if both are there, as
    its first lines.
    """
    try:
        lines = answer_in(reply).split("\n")
    except UnparsableReplyError:
        return Description(), reply
    end = next((number for number, line in enumerate(lines) if _PROGRAM.match(line)), None)
    found, taken = _fields(lines, range(len(lines) if end is None else end), first_lines=end is None)
    if not found:
        return Description(), reply
    rest = "\n".join(line for number, line in enumerate(lines) if number not in taken)
    return _description(found.get("name", ""), found.get("idea", "")), rest


def _fields(lines: Sequence[str], among: range, *, first_lines: bool) -> tuple[dict[str, str], set[int]]:
    """The fields in lines with these numbers, and the numbers of the fields' lines; with ``first_lines`` none at all
    unless both are there, with nothing in front or between.
    """
    found: dict[str, str] = {}
    taken: set[int] = set()
    place = among.start
    while place in among:
        field = _FIELD.match(lines[place])
        if field is not None and field[1].lower() not in found:
            value = place if field[2] else _below(lines, range(place + 1, among.stop))
            if value is not None:
                found[field[1].lower()] = plain(field[2] or lines[value])
                taken |= {place, value}
                place = value
        elif first_lines and lines[place].strip():
            break
        place += 1
    return (found, taken) if len(found) == 2 or not first_lines else ({}, set())


def _below(lines: Sequence[str], among: range) -> int | None:
    """The number of the first line among these that is not blank; None if it has another field, or is a heading."""
    first = next((number for number in among if lines[number].strip()), None)
    return None if first is None or _FIELD.match(lines[first]) or lines[first].lstrip().startswith("#") else first
