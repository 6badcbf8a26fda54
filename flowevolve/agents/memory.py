"""Agents that remember: what a change teaches, a memory made shorter, and what other tasks have taught.

Roles and figures: Controlled Self-Evolution for Algorithmic Code Optimization, §4.3 and its appendix.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from flowevolve.agents.reading import objects, read_array, read_object, text_of, texts, word_of
from flowevolve.llm.types import JSON, UnparsableReplyError
from flowevolve.programs.prompts import (
    OUTCOME_HEADING,
    PROGRAM_HEADING,
    REPLY_HEADING,
    Shown,
    shown_files,
    shown_outcome,
    shown_programs,
    task_section,
)
from flowevolve.prompts import fence

REFLECT_TITLE = "# Learn from a change"
COMPRESS_TITLE = "# Shorten a memory"
QUERIES_TITLE = "# Search the memory"
DISTILL_TITLE = "# What other tasks can learn"

CHILD_HEADING = "## What was made of it"
CHANGE_HEADING = "## How the score changed"
BOARD_HEADING = "## Directions that were tried"
MEMORY_HEADING = "## What is known"
IMPROVING_HEADING = "## Steps that helped most"
DEGRADING_HEADING = "## Steps that harmed most"

Outcome = Literal["success", "failed", "neutral"]
Kind = Literal["success", "failed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
KINDS: tuple[Kind, ...] = get_args(Kind)

DIRECTIONS_KEPT = 10
LESSONS_KEPT = 8
DISTILLED = 5
"""Entries that one task gives to others, at most."""
TEXT_CHARS = 400
"""A lesson or an entry is cut off here, so that no single reply fills a memory."""
_DIRECTION_CHARS = 120


@dataclass(frozen=True, slots=True)
class Direction:
    """A kind of change that was tried, and what came of it."""

    direction: str
    outcome: Outcome

    def to_json(self) -> dict[str, JSON]:
        return {"direction": self.direction, "outcome": self.outcome}

    @classmethod
    def of(cls, data: Mapping[str, JSON]) -> Direction:
        """What `to_json` made this of, or a reply of the same form.

        Raises:
            UnparsableReplyError: if something is missing.
        """
        name = " ".join(text_of(data, "direction").split())
        return cls(name[:_DIRECTION_CHARS], word_of(data, "outcome", OUTCOMES))


@dataclass(frozen=True, slots=True)
class Lesson:
    """What to do again (``success``), or not to (``failed``)."""

    kind: Kind
    text: str

    def to_json(self) -> dict[str, JSON]:
        return {"kind": self.kind, "text": self.text}

    @classmethod
    def of(cls, data: Mapping[str, JSON]) -> Lesson:
        """What `to_json` made this of, or a reply of the same form.

        Raises:
            UnparsableReplyError: if something is missing.
        """
        return cls(word_of(data, "kind", KINDS), text_of(data, "text")[:TEXT_CHARS])


@dataclass(frozen=True, slots=True)
class Insight:
    """What a reflection says of one change."""

    direction: Direction
    lesson: str


@dataclass(frozen=True, slots=True)
class Digest:
    """A memory in fewer words: directions with how often each was tried, and lessons."""

    directions: tuple[tuple[Direction, int], ...]
    lessons: tuple[Lesson, ...]

    def to_json(self) -> dict[str, JSON]:
        return {
            "directions": [{**direction.to_json(), "count": count} for direction, count in self.directions],
            "lessons": [lesson.to_json() for lesson in self.lessons],
        }

    @classmethod
    def of(cls, data: Mapping[str, JSON]) -> Digest:
        """What `to_json` made this of, or a reply of the same form: a direction without a count was tried once.

        Raises:
            UnparsableReplyError: if something is missing.
        """
        directions = objects(data.get("directions"), "directions")
        lessons = objects(data.get("lessons"), "lessons")
        return cls(
            tuple((Direction.of(each), _count(each.get("count"))) for each in directions),
            tuple(map(Lesson.of, lessons)),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A change that was tried: by how much the score rose, and what was learnt from it."""

    change: float
    insight: Insight


@dataclass(frozen=True, slots=True)
class Advice:
    """What one task teaches others."""

    title: str
    text: str


def reflect_prompt(statement: str, parent: Shown, child: Shown, change: float, board: str = "") -> str:
    """Ask what one change teaches. ``change`` is by how much the score rose; a child that failed has no score.

    ``board`` has the directions that are known (`shown_board`): a change of one of these kinds keeps its name, and is
    counted with it.
    """
    found = "helped" if change > 0 else "did not help"
    known = [f"{BOARD_HEADING}\n{fence(board)}"] if board else []
    named = (
        "\n  One that was tried before keeps the words that it has in the list, without the brackets." if board else ""
    )
    return "\n\n".join(
        [
            f"{REFLECT_TITLE}\n\nA program was changed, and both versions were run. The change {found}.",
            task_section(statement),
            f"{PROGRAM_HEADING}\n{shown_files(parent.program)}",
            f"{OUTCOME_HEADING}\n{shown_outcome(parent)}",
            shown_programs(CHILD_HEADING, {"Program": child}),
            f"{CHANGE_HEADING}\nChange: {json.dumps(change)}",
            *known,
            f"""{REPLY_HEADING}
Compare the two versions. Reply with one JSON object in a fenced block:
{{"direction": "...", "outcome": "success|failed|neutral", "lesson": "..."}}
- direction: what kind of change it is, in a few words that would fit the same change elsewhere in the program.{named}
- outcome: success if the score rose because of it, failed if it fell or the program broke, neutral if nothing changed.
- lesson: one or two sentences on why, and what to do again or to leave alone in the next change to this program.""",
        ]
    )


def read_insight(reply: str) -> Insight:
    """Raises:
    UnparsableReplyError: if direction, outcome or lesson is missing.
    """
    data = read_object(reply)
    return Insight(Direction.of(data), text_of(data, "lesson")[:TEXT_CHARS])


def compress_prompt(digest: Digest, tokens: int) -> str:
    """Ask for the same memory in fewer words. ``tokens`` are what it may have."""
    return "\n\n".join(
        [
            f"{COMPRESS_TITLE}\n\nNotes were taken while a program was being improved. They have become too long.",
            f"{MEMORY_HEADING}\n{fence(json.dumps(digest.to_json(), indent=1, ensure_ascii=False), 'json')}",
            f"""{REPLY_HEADING}
One JSON object of the same form in a fenced block, of at most {tokens} tokens.
- directions: 5 to {DIRECTIONS_KEPT}. Those that mean the same and ended alike become one, their counts added up. Those
  that were tried most and those that ended clearly stay.
- lessons: 5 to {LESSONS_KEPT}. Those that say the same become one; failures of different causes stay apart. Keep what
  is concrete, drop what is obvious.
- Invent nothing: all that you write has to be in the notes above.""",
        ]
    )


def read_digest(reply: str) -> Digest:
    """A memory that was made shorter: of more than there may be, the first ones.

    Raises:
        UnparsableReplyError: if it is none, or empty.
    """
    digest = Digest.of(read_object(reply))
    if not digest.directions and not digest.lessons:
        raise UnparsableReplyError("the shortened memory is empty")
    return Digest(digest.directions[:DIRECTIONS_KEPT], digest.lessons[:LESSONS_KEPT])


def queries_prompt(statement: str, program: Shown, memory: str, count: int) -> str:
    """Ask what to look for among experience with other tasks. ``memory`` is what is known of this one, or empty.

    A program without score and feedback is yet to be written: it may be told by a plan, under a name of its own.
    """
    ran = program.score is not None or bool(program.feedback.strip())
    due, holds = ("improved", "holds") if ran else ("written", "could hold")
    known = [f"{MEMORY_HEADING}\n{fence(memory)}"] if memory else []
    return "\n\n".join(
        [
            f"{QUERIES_TITLE}\n\nA program is to be {due}. Experience with other tasks can be searched by meaning.",
            task_section(statement),
            f"{PROGRAM_HEADING}\n{shown_files(program.program)}",
            *([f"{OUTCOME_HEADING}\n{shown_outcome(program)}"] if ran else []),
            *known,
            f"""{REPLY_HEADING}
{count} search queries, as a JSON array of texts in a fenced block.
- Each is about another thing that {holds} this program back: its method, its data, its mistakes.
- A query is one sentence in words that would fit other tasks of the kind, without names from this one.""",
        ]
    )


def read_queries(reply: str, count: int) -> tuple[str, ...]:
    """At most ``count`` queries, each once.

    Raises:
        UnparsableReplyError: if there is none.
    """
    return texts(read_array(reply), "queries")[:count]


def distill_prompt(statement: str, best: Shown, improving: Sequence[Step], degrading: Sequence[Step]) -> str:
    """Ask what the steps that changed the score most teach those who work on other tasks."""
    parts = [
        f"{DISTILL_TITLE}\n\nA program was improved step by step. Write down what will help with other tasks.",
        task_section(statement),
        f"{PROGRAM_HEADING}\n{shown_files(best.program)}",
        f"{OUTCOME_HEADING}\n{shown_outcome(best)}",
    ]
    for heading, steps in ((IMPROVING_HEADING, improving), (DEGRADING_HEADING, degrading)):
        if steps:
            parts.append("\n\n".join([heading, *(_step(number, each) for number, each in enumerate(steps, 1))]))
    parts.append(f"""{REPLY_HEADING}
At most {DISTILLED} pieces of experience, the most useful first, as a JSON array in a fenced block:
[{{"title": "...", "text": "..."}}]
- title: when it applies, as somebody would search for it.
- text: what to do or to avoid there, and why, in two or three sentences that make sense without this task.""")
    return "\n\n".join(parts)


def read_advice(reply: str) -> tuple[Advice, ...]:
    """At most `DISTILLED` pieces of experience; none is an answer, too.

    Raises:
        UnparsableReplyError: if it is no array, or a title or text is missing.
    """
    found = objects(read_array(reply), "experience")
    advice = (Advice(" ".join(text_of(each, "title").split()), text_of(each, "text")[:TEXT_CHARS]) for each in found)
    return tuple(dict.fromkeys(advice))[:DISTILLED]


def shown_memory(directions: Sequence[tuple[Direction, int]], lessons: Sequence[Lesson]) -> str:
    """A memory as prompts for programs show it; empty for an empty one."""
    parts: list[str] = []
    if directions:
        parts.append(f"Directions that were tried:\n{shown_board(directions)}")
    for kind, heading in (("success", "What worked:"), ("failed", "What did not work:")):
        lines = (_item(lesson.text) for lesson in lessons if lesson.kind == kind)
        if any(lesson.kind == kind for lesson in lessons):
            parts.append("\n".join([heading, *lines]))
    return "\n\n".join(parts)


def shown_board(directions: Sequence[tuple[Direction, int]]) -> str:
    """A direction board, a line for each direction."""
    return "\n".join(f"- {each.direction} ({each.outcome}, {_times(count)})" for each, count in directions)


def _step(number: int, step: Step) -> str:
    insight = step.insight
    return f"""### Step {number}
Change: {json.dumps(step.change)}
Direction: {insight.direction.direction} ({insight.direction.outcome})
{fence(insight.lesson)}"""


def _item(text: str) -> str:
    """A text of some lines as an item of a list."""
    return "- " + "\n  ".join(text.splitlines())


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _count(value: JSON) -> int:
    """A count as models write it: at least 1."""
    number = cast(float, value) if isinstance(value, int | float) else 1
    return max(1, int(number)) if number == number and abs(number) < 1e9 else 1
