"""Prompts of a memory: learning from a change, shortening the memory, searching and sharing it across tasks.

The roles and figures are those of Controlled Self-Evolution for Algorithmic Code Optimization, §4.3 and its appendix.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from flowevolve._util.json_types import JSON
from flowevolve.core.payload_kinds import payload
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.core.templates import Prompt, Shorten, Templates
from flowevolve.prompts.programs import ShownProgram, shown_files, shown_outcome, shown_programs, shown_task
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.json_replies import objects, read_array, read_object, text_of, texts, word_of
from flowevolve.prompts.reading.placeholders import no_placeholder

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

DirectionOutcome = Literal["success", "failed", "neutral"]
LessonKind = Literal["success", "failed"]
OUTCOMES: tuple[DirectionOutcome, ...] = get_args(DirectionOutcome)
LESSON_KINDS: tuple[LessonKind, ...] = get_args(LessonKind)

DIRECTIONS_KEPT = 10
LESSONS_KEPT = 8
DISTILLED = 5
"""The most pieces of experience that one task passes on to others."""
TEXT_CHARS = 400
"""The most characters of a lesson or an entry, so that no single reply fills a memory."""
_DIRECTION_CHARS = 120


@payload("memory.Direction")
@dataclass(frozen=True, slots=True)
class Direction:
    """A kind of change that was tried, and its outcome."""

    direction: str
    outcome: DirectionOutcome

    def to_json(self) -> dict[str, JSON]:
        return {"direction": self.direction, "outcome": self.outcome}

    @classmethod
    def of(cls, data: Mapping[str, JSON]) -> Direction:
        """Read what `to_json` has written, or a reply of the same form.

        Raises:
            UnparsableReplyError: if something is missing.
        """
        name = " ".join(text_of(data, "direction").split())
        return cls(name[:_DIRECTION_CHARS], word_of(data, "outcome", OUTCOMES))


@payload("memory.Lesson")
@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson about what to do again (``success``) or to avoid (``failed``)."""

    kind: LessonKind
    text: str

    def to_json(self) -> dict[str, JSON]:
        return {"kind": self.kind, "text": self.text}

    @classmethod
    def of(cls, data: Mapping[str, JSON]) -> Lesson:
        """Read what `to_json` has written, or a reply of the same form.

        Raises:
            UnparsableReplyError: if something is missing.
        """
        return cls(word_of(data, "kind", LESSON_KINDS), text_of(data, "text")[:TEXT_CHARS])


@payload("memory.Insight")
@dataclass(frozen=True, slots=True)
class Insight:
    """What a reflection learns from one change."""

    direction: Direction
    lesson: str


@payload("memory.Digest")
@dataclass(frozen=True, slots=True)
class Digest:
    """The content of a memory: directions with how often each was tried, and lessons."""

    directions: tuple[tuple[Direction, int], ...]
    lessons: tuple[Lesson, ...]

    def to_json(self) -> dict[str, JSON]:
        return {
            "directions": [{**direction.to_json(), "count": count} for direction, count in self.directions],
            "lessons": [lesson.to_json() for lesson in self.lessons],
        }

    @classmethod
    def of(cls, data: Mapping[str, JSON]) -> Digest:
        """Read what `to_json` has written, or a reply of the same form. A direction without a count was tried once.

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
    """A change that was tried: the increase of the score, and the insight from it."""

    change: float
    insight: Insight


@dataclass(frozen=True, slots=True)
class Advice:
    """A piece of experience from one task for others."""

    title: str
    text: str


def reflect_prompt(
    templates: Templates, statement: str, parent: ShownProgram, child: ShownProgram, change: float, board: str = ""
) -> Prompt:
    """Ask what one change teaches. ``change`` is the increase of the score; a child that failed has no score.

    ``board`` lists the known directions (`shown_board`): for a change of the same kind the reply should use the name of
    one of these, so that they are counted together.
    """
    return templates.write(
        "learn_from_change",
        lambda shorten: {
            **_about(templates, statement, parent, shorten),
            "found": templates.text("learn_helped" if change > 0 else "learn_harmed"),
            "child": shown_programs({"Program": child}, shorten),
            "change": json.dumps(change),
            "board": fence(board) if board else "",
        },
    )


def _about(templates: Templates, statement: str, program: ShownProgram, shorten: Shorten) -> Mapping[str, str]:
    """The fields that show a task and a program."""
    return {
        "data": templates.text("data"),
        "statement": shown_task(statement),
        "program": shown_files(program.program, shorten),
        "outcome": shown_outcome(program, shorten),
    }


def read_insight(reply: str) -> Insight:
    """Raises:
    UnparsableReplyError: if direction, outcome or lesson is missing, or the lesson is a placeholder.
    """
    data = read_object(reply)
    return Insight(Direction.of(data), no_placeholder(text_of(data, "lesson"), "the lesson")[:TEXT_CHARS])


def compress_prompt(templates: Templates, digest: Digest, tokens: int) -> Prompt:
    """Ask for the same memory in fewer words, of at most ``tokens`` tokens."""
    return templates.write(
        "compress_memory",
        lambda shorten: {
            "data": templates.text("data"),
            "memory": fence(json.dumps(digest.to_json(), indent=1, ensure_ascii=False), "json"),
            "tokens": str(tokens),
            "directions": str(DIRECTIONS_KEPT),
            "lessons": str(LESSONS_KEPT),
        },
    )


def read_digest(reply: str) -> Digest:
    """The shortened memory in a reply, with at most `DIRECTIONS_KEPT` directions and `LESSONS_KEPT` lessons.

    Raises:
        UnparsableReplyError: if there is none, or it is empty.
    """
    digest = Digest.of(read_object(reply))
    if not digest.directions and not digest.lessons:
        raise UnparsableReplyError("the shortened memory is empty")
    return Digest(digest.directions[:DIRECTIONS_KEPT], digest.lessons[:LESSONS_KEPT])


def queries_prompt(templates: Templates, statement: str, program: ShownProgram, memory: str, count: int) -> Prompt:
    """Ask for queries to search experience with other tasks. ``memory`` is that of this task, and may be empty.

    A program without score and feedback has not been written yet; its place may be taken by a plan, as a file with a
    name of its own.
    """
    ran = program.score is not None or bool(program.feedback.strip())
    return templates.write(
        "search_memory",
        lambda shorten: {
            **_about(templates, statement, program, shorten),
            **({} if ran else {"outcome": ""}),
            "memory": fence(shorten(memory)) if memory else "",
            "count": str(count),
        },
    )


def read_queries(reply: str, count: int) -> tuple[str, ...]:
    """At most ``count`` queries, each once.

    Raises:
        UnparsableReplyError: if there is none.
    """
    return texts(read_array(reply), "queries")[:count]


def distill_prompt(
    templates: Templates, statement: str, best: ShownProgram, improving: Sequence[Step], degrading: Sequence[Step]
) -> Prompt:
    """Ask what the steps that changed the score most teach for other tasks."""
    return templates.write(
        "distill",
        lambda shorten: {
            **_about(templates, statement, best, shorten),
            "improving": _steps(improving),
            "degrading": _steps(degrading),
            "most": str(DISTILLED),
        },
    )


def _steps(steps: Sequence[Step]) -> str:
    return "\n\n".join(_step(number, each) for number, each in enumerate(steps, 1))


def read_advice(reply: str) -> tuple[Advice, ...]:
    """At most `DISTILLED` pieces of experience; there may be none.

    Raises:
        UnparsableReplyError: if it is no array, or a title or text is missing, or a text is a placeholder.
    """
    found = objects(read_array(reply), "experience")
    said = ((text_of(each, "title"), no_placeholder(text_of(each, "text"), "the text")) for each in found)
    advice = (Advice(" ".join(title.split()), text[:TEXT_CHARS]) for title, text in said)
    return tuple(dict.fromkeys(advice))[:DISTILLED]


def shown_memory(directions: Sequence[tuple[Direction, int]], lessons: Sequence[Lesson]) -> str:
    """A memory as prompts for programs show it; an empty text for an empty memory."""
    parts: list[str] = []
    if directions:
        parts.append(f"Directions that were tried:\n{shown_board(directions)}")
    for kind, heading in (("success", "What worked:"), ("failed", "What did not work:")):
        lines = (_item(lesson.text) for lesson in lessons if lesson.kind == kind)
        if any(lesson.kind == kind for lesson in lessons):
            parts.append("\n".join([heading, *lines]))
    return "\n\n".join(parts)


def shown_board(directions: Sequence[tuple[Direction, int]]) -> str:
    """The list of known directions, one line for each."""
    return "\n".join(f"- {each.direction} ({each.outcome}, {_times(count)})" for each, count in directions)


def _step(number: int, step: Step) -> str:
    insight = step.insight
    return f"""### Step {number}
Change: {json.dumps(step.change)}
Direction: {insight.direction.direction} ({insight.direction.outcome})
{fence(insight.lesson)}"""


def _item(text: str) -> str:
    """A text as an item of a list, with its further lines indented."""
    return "- " + "\n  ".join(text.splitlines())


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _count(value: JSON) -> int:
    """A count in a reply, at least 1; 1 if it is missing or not a plausible number."""
    return max(1, int(value)) if isinstance(value, int | float) and abs(value) < 1e9 else 1  # not for NaN
