"""Reads the name and the idea that a reply may give its program, in lines above the program."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.fields import lines_named, plain
from flowevolve.prompts.reading.json_replies import answer_in

_FIELD = re.compile(r"^[ \t>*_#`•+–-]*(name|idea)[ \t*_`]*[:：][ \t*_]*(\S.*)$", re.IGNORECASE)
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
    found: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines[:end]):
        field = _FIELD.match(line)
        if field is not None:
            found.setdefault(field[1].lower(), (number, plain(field[2])))
        elif end is None and line.strip():
            break
    if not found or (end is None and len(found) < 2):
        return Description(), reply
    taken = {number for number, _ in found.values()}
    rest = "\n".join(line for number, line in enumerate(lines) if number not in taken)
    name, idea = (found.get(key, (0, ""))[1] for key in ("name", "idea"))
    return _description(name, idea), rest
