"""Prompts of agents that describe programs in words, give the search a direction, and choose examples.

They are the Summarizer, Navigator and Sampler of ContextEvolve (Su et al., 2026, §4.2). A program that is described in
words is a `ShownProgram` with one file named `ABSTRACT`; without a Summarizer, programs are shown themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve._util.json_types import JSON
from flowevolve.core.model import UnparsableReplyError
from flowevolve.core.record import Attributes
from flowevolve.prompts.programs import (
    PROGRAM_HEADING,
    REPLY_HEADING,
    ShownProgram,
    shown_files,
    shown_outcome,
    shown_programs,
    task_section,
)
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.json_replies import read_object, text_of

SUMMARIZE_TITLE = "# Describe a program"
NAVIGATE_TITLE = "# Give the search a direction"
EXEMPLARS_TITLE = "# Choose examples"

PARENT_HEADING = "## What it was made from"
PROGRAMS_HEADING = "## The programs"
DIRECTION_HEADING = "## The direction"
ABSTRACT = "abstract"
"""The file name of a program that is described in words."""

TrajectoryKind = Literal["improvement", "mixed", "decline"]
KIND_HEADINGS: Mapping[TrajectoryKind, str] = {
    "improvement": "## Consistent improvement",
    "mixed": "## Mixed",
    "decline": "## Consistent decline",
}

WORDS, GUIDANCE_WORDS = 100, 150
"""The most words that an abstract, and guidance, should have."""
_MOST_CHARACTERS = 1500
"""Longer abstracts and guidance are cut to this, so that they can't fill the prompts that show them."""
_MOST_TRAITS, _MOST_TRAIT_CHARACTERS = 8, 120


class Summary(Attributes):
    """A program in words, with its traits: those ``inherited`` from its parent, and ``new`` ones. It is empty where
    nobody described the program.
    """

    abstract: str = ""
    inherited: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The text that prompts show, with the traits, as the agents know nothing else of a program."""
        kept = [f"Inherited: {'; '.join(self.inherited)}"] if self.inherited else []
        added = [f"New: {'; '.join(self.new)}"] if self.new else []
        return "\n".join([self.abstract, *kept, *added])


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The names of programs, each made from the one before it, and how the score changed from each to the next.

    A change is the child's score minus the parent's, so above 0 is better (eq. 5 of the paper has the other sign);
    None: the child failed.
    """

    kind: TrajectoryKind
    programs: tuple[str, ...]
    changes: tuple[float | None, ...]

    def __str__(self) -> str:
        steps = zip(self.programs[1:], self.changes, strict=True)
        return " -> ".join([self.programs[0], *(f"{name} ({_change(change)})" for name, change in steps)])


@dataclass(frozen=True, slots=True)
class Example:
    """A program that was chosen to be shown, and why."""

    program: str
    why: str


def _change(change: float | None) -> str:
    return "failed" if change is None else f"{change:+.6g}"


def summarize_prompt(program: Mapping[str, str], parent: str = "") -> str:
    """Ask for a description of a program; ``parent`` is the description of its parent, if it has one (eq. 4)."""
    before = [f"{PARENT_HEADING}\n{fence(parent, ABSTRACT)}"] if parent else []
    inherited = "what it kept of that which it was made from" if parent else "nothing, as it was made from nothing"
    return "\n\n".join(
        [
            SUMMARIZE_TITLE,
            *before,
            f"{PROGRAM_HEADING}\n{shown_files(program)}",
            f"""{REPLY_HEADING}
Others will decide by your words alone, without the program, what to try next.
- abstract: by what method it works, on what structures, with which numbers that matter. At most {WORDS} words, no code.
- inherited: {inherited}; whatever is left out here counts as lost.
- new: what it has that this had not. At most {_MOST_TRAITS} traits of each kind, in a few words each.
Reply with JSON: {{"inherited": ["..."], "new": ["..."], "abstract": "..."}}""",
        ]
    )


def navigate_prompt(statement: str, programs: Mapping[str, ShownProgram], trajectories: Sequence[Trajectory]) -> str:
    """Ask for the direction of the search, given trajectories and all programs on them by name (eq. 5)."""
    found = {kind: [f"- {each}" for each in trajectories if each.kind == kind] for kind in KIND_HEADINGS}
    return "\n\n".join(
        [
            NAVIGATE_TITLE,
            task_section(statement),
            _programs(programs),
            *("\n".join([KIND_HEADINGS[kind], *lines]) for kind, lines in found.items() if lines),
            f"""{REPLY_HEADING}
Each program was made of the one before its arrow; in brackets stands by how much the score rose or fell.
- Find out which ideas came with gains, which with losses, and which were tried often enough.
- Say which ways are worth going next, and which nobody has gone yet. Name approaches, and leave it to the programmer
  how to carry them out: no steps, no code.
- At most {GUIDANCE_WORDS} words.
Reply with JSON: {{"guidance": "..."}}""",
        ]
    )


def exemplars_prompt(
    statement: str, parent: ShownProgram, programs: Mapping[str, ShownProgram], most: int, guidance: str = ""
) -> str:
    """Ask which programs, at most ``most``, to show in the prompt that asks to improve ``parent`` (eq. 6)."""
    direction = [f"{DIRECTION_HEADING}\n{fence(guidance)}"] if guidance else []
    return "\n\n".join(
        [
            EXEMPLARS_TITLE,
            task_section(statement),
            f"{PROGRAM_HEADING}\n{shown_outcome(parent)}\n{shown_files(parent.program)}",
            *direction,
            _programs(programs),
            f"""{REPLY_HEADING}
A programmer is about to improve the first program. Choose at most {most} of the others to be shown beside it.
- What helps is what bears on the direction, has proved itself, and is unlike the program and the others chosen.
- Look at the ideas, not at the scores alone: one that did badly, or failed, is worth showing if its idea is new and
  could be made to work.
- Every program shown costs: leave out what says nothing more. None at all is an answer, too.
Reply with JSON: {{"chosen": [{{"id": "...", "why": "in a few words, what to take from it"}}]}}""",
        ]
    )


def _programs(programs: Mapping[str, ShownProgram]) -> str:
    return shown_programs(PROGRAMS_HEADING, {f"Program {name}": each for name, each in programs.items()})


def read_summary(reply: str) -> Summary:
    """Raises:
    UnparsableReplyError: if there is no abstract, or a list of traits is missing.
    """
    data = read_object(reply)
    abstract = _cut(text_of(data, "abstract"))
    return Summary(abstract=abstract, inherited=_traits(data, "inherited"), new=_traits(data, "new"))


def _traits(data: Mapping[str, JSON], name: str) -> tuple[str, ...]:
    """The first `_MOST_TRAITS` texts of a list, which may be empty."""
    values = data.get(name)
    if not isinstance(values, list):
        raise UnparsableReplyError(f"{name!r} is missing or no array")
    found = dict.fromkeys(" ".join(value.split()) for value in values if isinstance(value, str) and value.strip())
    return tuple(_cut(text, _MOST_TRAIT_CHARACTERS) for text in list(found)[:_MOST_TRAITS])


def read_guidance(reply: str) -> str:
    """Raises:
    UnparsableReplyError: if there is no guidance.
    """
    return _cut(text_of(read_object(reply), "guidance"))


def read_examples(reply: str, known: Collection[str], most: int) -> tuple[Example, ...]:
    """The first ``most`` examples that were chosen, which may be none. An element that is just a name is accepted.

    Raises:
        UnparsableReplyError: if the list is missing, or is not empty but has no known program.
    """
    chosen = read_object(reply).get("chosen")
    if not isinstance(chosen, list):
        raise UnparsableReplyError("'chosen' is missing or no array")
    found: dict[str, Example] = {}
    for each in chosen:
        named: Mapping[str, JSON] = each if isinstance(each, dict) else {"id": each}
        name = str(named.get("id", "")).removeprefix("Program ").strip()
        why = named.get("why")
        if name in known and name not in found:
            found[name] = Example(name, _cut(why.strip(), _MOST_TRAIT_CHARACTERS) if isinstance(why, str) else "")
    if chosen and not found:
        raise UnparsableReplyError("none of the programs in 'chosen' is one of those shown")
    return tuple(found.values())[:most]


def _cut(text: str, most: int = _MOST_CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
