"""Prompts of agents that describe programs in words, give the search a direction, and choose examples.

They are the Summarizer, Navigator and Sampler of ContextEvolve (Su et al., 2026, §4.2). A program that is described in
words is a `ShownProgram` with one file named `ABSTRACT`; without a Summarizer, the programs themselves are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve._util.json_types import JSON
from flowevolve.core.record import Attributes
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.core.templates import Prompt, Shorten, Templates
from flowevolve.prompts.programs import ShownProgram, shown_files, shown_outcome, shown_programs, shown_task
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.json_replies import read_object, text_of
from flowevolve.prompts.reading.placeholders import no_placeholder

SUMMARIZE_TITLE = "# Describe a program"
NAVIGATE_TITLE = "# Give the search a direction"
EXEMPLARS_TITLE = "# Choose examples"

PARENT_HEADING = "## What it was made from"
PROGRAMS_HEADING = "## The programs"
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
    """A program described in words, with its traits: those ``inherited`` from its parent, and ``new`` ones. It is empty
    if nobody described the program.
    """

    abstract: str = ""
    inherited: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The text that prompts show, with the traits, as the agents see nothing else of a program."""
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


def summarize_prompt(templates: Templates, program: Mapping[str, str], parent: str = "") -> Prompt:
    """Ask for a description of a program; ``parent`` is the description of its parent, if it has one (eq. 4)."""
    return templates.write(
        "summarize",
        lambda shorten: {
            "data": templates.text("data"),
            "parent": fence(shorten(parent), ABSTRACT) if parent else "",
            "program": shown_files(program, shorten),
            "most": str(_MOST_TRAITS),
            "words": str(WORDS),
        },
    )


def navigate_prompt(
    templates: Templates, statement: str, programs: Mapping[str, ShownProgram], trajectories: Sequence[Trajectory]
) -> Prompt:
    """Ask for the direction of the search, given trajectories and all programs on them by name (eq. 5)."""
    return templates.write(
        "navigate",
        lambda shorten: {
            "data": templates.text("data"),
            "statement": shown_task(statement),
            "programs": _programs(programs, shorten),
            **{kind: _trajectories(trajectories, kind) for kind in KIND_HEADINGS},
            "words": str(GUIDANCE_WORDS),
        },
    )


def _trajectories(trajectories: Sequence[Trajectory], kind: TrajectoryKind) -> str:
    return "\n".join(f"- {each}" for each in trajectories if each.kind == kind)


def exemplars_prompt(
    templates: Templates,
    statement: str,
    parent: ShownProgram,
    programs: Mapping[str, ShownProgram],
    most: int,
    guidance: str = "",
) -> Prompt:
    """Ask which programs, at most ``most``, to show in the prompt that asks to improve ``parent`` (eq. 6)."""
    return templates.write(
        "exemplars",
        lambda shorten: {
            "data": templates.text("data"),
            "statement": shown_task(statement),
            "program": f"{shown_outcome(parent, shorten)}\n{shown_files(parent.program, shorten)}",
            "direction": fence(shorten(guidance)) if guidance else "",
            "programs": _programs(programs, shorten),
            "most": str(most),
        },
    )


def _programs(programs: Mapping[str, ShownProgram], shorten: Shorten) -> str:
    return shown_programs({f"Program {name}": each for name, each in programs.items()}, shorten)


def read_summary(reply: str) -> Summary:
    """Raises:
    UnparsableReplyError: if there is no abstract, or a placeholder for it, or a list of traits is missing.
    """
    data = read_object(reply)
    abstract = _cut(no_placeholder(text_of(data, "abstract"), "the abstract"))
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
    UnparsableReplyError: if there is no guidance, or a placeholder for it.
    """
    return _cut(no_placeholder(text_of(read_object(reply), "guidance"), "the guidance"))


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
