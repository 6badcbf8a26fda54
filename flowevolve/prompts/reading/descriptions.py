"""Reads the name and the idea that a reply may give to the program it has, in lines before that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flowevolve.core.model import UnparsableReplyError
from flowevolve.prompts.reading.fields import plain
from flowevolve.prompts.reading.json_replies import answer_in

_FIELD = re.compile(r"^[ \t>*_#`•+–-]*(name|idea)[ \t*_`]*[:：][ \t*_]*(\S.*)$", re.IGNORECASE)
_PROGRAM = re.compile(r"^[ \t]*(?:`{3,}|~{3,}|<{4,}|-{5,}|[*_#>]*(?:SEARCH|FIND|FILE\w*)\b[ \t*_]*:)", re.IGNORECASE)
_LONGEST_NAME = 80
_LONGEST_IDEA = 300


@dataclass(frozen=True, slots=True)
class Description:
    """What a reply says of its program, a line each; empty where it says nothing."""

    name: str = ""
    idea: str = ""


def read_description(reply: str) -> tuple[Description, str]:
    """The name and the idea of a reply, and the reply without these lines; as it is where there are none.

    They stand above the first fence or edit. In a reply without any, they are its first lines, and both are there.
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
    name, idea = (" ".join(found.get(key, (0, ""))[1].split()) for key in ("name", "idea"))
    return Description(name[:_LONGEST_NAME], idea[:_LONGEST_IDEA]), rest
