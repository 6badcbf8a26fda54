"""How the world `code` reads a prompt: its sections, the programs in them with their scores, and its hints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowevolve.programs.edits import SEARCH_LINE
from flowevolve.prompts.plans import IMPLEMENT_TITLE
from flowevolve.prompts.programs import (
    ADVICE_HEADING,
    ANCESTORS_HEADING,
    HOW_HEADING,
    OTHERS_HEADING,
    OUTCOME_HEADING,
    PROGRAM_HEADING,
    REPLY_HEADING,
    ShownProgram,
)
from flowevolve.prompts.reading.children import Form
from flowevolve.prompts.reading.fences import labelled_blocks
from flowevolve.prompts.slots import FROM_FIRST, FROM_SECOND, KEEP_HEADING, TAKE_HEADING

KINDS = ("constants", "operators", "calls", "loops", "statements", "crossover", "growth")
"""The kinds of changes that a coder makes, and that advice can prefer or avoid."""
_FENCE = re.compile(r"^[ \t]*(`{3,})")
_SCORE = re.compile(r"^Score: (-?\d[-+.\deE]*)", re.MULTILINE)
_HEADING = re.compile(r"^### (?:.* )?(\S+)$", re.MULTILINE)
_HINT = re.compile(r"^\W*(prefer|avoid): *([a-z, ]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """What a prompt for a program asks for. ``parent`` is None where it asks for a different program."""

    parent: ShownProgram | None
    others: Sequence[ShownProgram]
    form: Form
    leanings: Mapping[str, float]
    """How strongly the hints prefer each kind of change that they name: 1 is most preferred, -1 is most avoided."""
    keep: Sequence[str] = ()
    """The parts that are to stay as they are in the parent."""
    take: Sequence[str] = ()
    """The parts that are to be taken over from the first of the other programs."""
    ancestors: Sequence[ShownProgram] = ()
    """Earlier versions of the parent."""
    anew: bool = False
    """Whether a new program is asked for, and the parent only shows what form it must have."""
    hints: str = ""
    """What the prompt says about how to proceed, and the advice that it gives."""


def read_prompt(prompt: str) -> ProgramRequest:
    parts = sections(prompt)
    hints = parts.get(HOW_HEADING, "") + "\n" + parts.get(ADVICE_HEADING, "")
    taken = [line.rpartition(": ") for line in listed(parts.get(TAKE_HEADING, ""))]
    return ProgramRequest(
        parent_of(parts),
        programs(parts.get(OTHERS_HEADING, "")),
        "edits" if SEARCH_LINE in parts.get(REPLY_HEADING, "") else "whole",
        leanings(hints),
        [*listed(parts.get(KEEP_HEADING, "")), *(part for part, _, source in taken if source == FROM_FIRST)],
        [part for part, _, source in taken if source == FROM_SECOND],
        programs(parts.get(ANCESTORS_HEADING, "")),
        prompt.startswith(IMPLEMENT_TITLE),
        hints,
    )


def sections(prompt: str) -> dict[str, str]:
    """Split a prompt into texts by their second-level headings. Lines inside of a fence are not taken for headings."""
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


def programs(text: str) -> list[ShownProgram]:
    """All programs below third-level headings."""
    return [program for _, part in _headed(text) if (program := _read_program(part)) is not None]


def named_programs(text: str) -> dict[str, ShownProgram]:
    """All programs below third-level headings by their names, which are the last words of the headings."""
    return {name: program for name, part in _headed(text) if (program := _read_program(part)) is not None}


def _headed(text: str) -> list[tuple[str, str]]:
    parts = _HEADING.split(text)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def listed(text: str) -> list[str]:
    """The items of a Markdown list, one on each line."""
    return [line.removeprefix("- ").strip() for line in text.split("\n") if line.startswith("- ")]


def all_programs(prompt: str) -> list[ShownProgram]:
    """The program to improve, if there is one, and all programs below third-level headings."""
    parts = sections(prompt)
    parent = parent_of(parts)
    found = [] if parent is None else [parent]
    for heading, text in parts.items():
        if heading not in (PROGRAM_HEADING, OUTCOME_HEADING):
            found += programs(text)
    return found


def parent_of(parts: Mapping[str, str]) -> ShownProgram | None:
    """The program that a prompt asks to improve, with the score and feedback that it got."""
    return _read_program(parts.get(PROGRAM_HEADING, "") + "\n" + parts.get(OUTCOME_HEADING, ""))


def _read_program(text: str) -> ShownProgram | None:
    blocks = labelled_blocks(text)
    files = {label: body for label, body in blocks if label}
    if not files:
        return None
    score = _SCORE.search(text)
    feedback = next((body for label, body in blocks if not label), "")
    return ShownProgram(files, None if score is None else float(score[1]), feedback)


def hinted(text: str, word: str) -> frozenset[str]:
    """The kinds of changes named in the lines ``prefer: KIND, KIND`` or ``avoid: KIND``, by the line's first word."""
    return frozenset(kind for said, kind in _hints(text) if said == word)


def leanings(text: str) -> dict[str, float]:
    """For each kind, how many lines prefer it less how many avoid it, scaled so that the largest of them is 1 or -1."""
    said: Counter[str] = Counter()
    for word, kind in _hints(text):
        said[kind] += 1 if word == "prefer" else -1
    most = max(map(abs, said.values()), default=0)
    return {kind: count / most for kind, count in said.items()} if most else {}


def _hints(text: str) -> list[tuple[str, str]]:
    named = [(word, kind.strip()) for word, kinds in _HINT.findall(text) for kind in kinds.split(",")]
    return [(word, kind) for word, kind in named if kind in KINDS]
