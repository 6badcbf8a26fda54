"""What the world `code` sees of a request: headed sections with fenced texts, programs and their scores, hints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowevolve.programs.edits import SEARCH_LINE
from flowevolve.programs.prompts import (
    ADVICE_HEADING,
    HOW_HEADING,
    OTHERS_HEADING,
    OUTCOME_HEADING,
    PROGRAM_HEADING,
    REPLY_HEADING,
    Form,
)
from flowevolve.prompts import labelled_blocks

KINDS = ("constants", "operators", "calls", "loops", "statements", "crossover", "growth")
"""Of changes that a coder makes, and that advice can prefer."""
_FENCE = re.compile(r"^[ \t]*(`{3,})")
_SCORE = re.compile(r"^Score: (-?\d[-+.\deE]*)", re.MULTILINE)
_HINT = re.compile(r"^\W*(prefer|avoid): *([a-z, ]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Seen:
    """A program as a prompt shows it; the score is None where there is none."""

    files: Mapping[str, str]
    score: float | None
    feedback: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a prompt for a program asks. ``parent`` is None where a different program is asked for."""

    parent: Seen | None
    others: Sequence[Seen]
    form: Form
    prefer: frozenset[str]
    avoid: frozenset[str]


def read_prompt(prompt: str) -> Asked:
    parts = sections(prompt)
    hints = parts.get(HOW_HEADING, "") + "\n" + parts.get(ADVICE_HEADING, "")
    return Asked(
        _parent(parts),
        programs(parts.get(OTHERS_HEADING, "")),
        "edits" if SEARCH_LINE in parts.get(REPLY_HEADING, "") else "whole",
        hinted(hints, "prefer"),
        hinted(hints, "avoid"),
    )


def sections(prompt: str) -> dict[str, str]:
    """Texts by their headings of the second level; what looks like a heading inside of a fence is none."""
    found: dict[str, list[str]] = {}
    heading, fence = "", ""
    for line in prompt.split("\n"):
        marks = _FENCE.match(line)
        if marks and (not fence or marks[1].startswith(fence)):
            fence = "" if fence else marks[1]
        if not fence and line.startswith("## "):
            heading = line.strip()
        else:
            found.setdefault(heading, []).append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def programs(text: str) -> list[Seen]:
    """All programs below headings of the third level."""
    parts = re.split(r"^### .*$", text, flags=re.MULTILINE)
    return [seen for part in parts[1:] if (seen := _seen(part)) is not None]


def all_programs(prompt: str) -> list[Seen]:
    """The program to improve, if there is one, and all programs below headings of the third level."""
    parts = sections(prompt)
    parent = _parent(parts)
    found = [] if parent is None else [parent]
    for heading, text in parts.items():
        if heading not in (PROGRAM_HEADING, OUTCOME_HEADING):
            found += programs(text)
    return found


def _parent(parts: Mapping[str, str]) -> Seen | None:
    return _seen(parts.get(PROGRAM_HEADING, "") + "\n" + parts.get(OUTCOME_HEADING, ""))


def _seen(text: str) -> Seen | None:
    blocks = labelled_blocks(text)
    files = {label: body for label, body in blocks if label}
    if not files:
        return None
    score = _SCORE.search(text)
    feedback = next((body for label, body in blocks if not label), "")
    return Seen(files, None if score is None else float(score[1]), feedback)


def hinted(text: str, word: str) -> frozenset[str]:
    """The kinds of changes named in lines ``prefer: KIND, KIND`` or ``avoid: KIND``."""
    named = {kind.strip() for said, kinds in _HINT.findall(text) if said == word for kind in kinds.split(",")}
    return frozenset(named & set(KINDS))
