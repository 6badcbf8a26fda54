"""The prompts of algorithms that keep a playbook, and the parsers of their replies (roles: ACE, arXiv 2510.04618, §3).

The prompts have the same form as those of `flowevolve.prompts.reflection`. Parsers ignore what they can't read, down to
a single operation; a reply in which they can read nothing raises `UnparsableReplyError`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import UnparsableReplyError
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.json_replies import read_json

LESSON_TITLE = "# Learn from an answer"
CURATE_TITLE = "# Keep a playbook"
MERGE_TITLE = "# Say it once"
GATHER_TITLE = "# Gather lessons"
COMPARE_TITLE = "# Compare advice with what was noted meanwhile"
PLAYBOOK_HEADING = "## Playbook"
USED_HEADING = "## Advice that was at hand"
FEEDBACK_HEADING = "## Feedback"
LESSONS_HEADING = "## Lessons"
ADVICE_HEADING = "## Advice"
NEW_HEADING = "## New advice"
NOTED_HEADING = "## Noted meanwhile"
CITE_RULE = 'After the answer, add one more line "Used:" with the ids of the notes that helped, or "Used: none".'

NOTHING_USED = "none"
"""Stands in place of ids if an answer says that it used no note."""

Tag = Literal["helpful", "harmful", "neutral"]
_TAGS: Mapping[str, Tag] = {"helpful": "helpful", "harmful": "harmful", "neutral": "neutral"}
Relation = Literal["same", "new", "conflict"]
_RELATIONS: Mapping[str, Relation] = {"same": "same", "new": "new", "conflict": "conflict"}

_COUNTERS = r"(?: \(helpful (?P<up>\d+), harmful (?P<down>\d+)\))"
NOTE_LINE = re.compile(rf"^- \[(?P<id>[a-z]{{1,3}}-\d{{5,}})\] (?P<text>.*?){_COUNTERS}?$")
"""A bullet as prompts show it, with its counters or without."""

_SHOWN_COUNTERS = re.compile(rf"{_COUNTERS}$", re.IGNORECASE)
_ID = re.compile(r"\b[a-z]{1,3}-\d{5,}\b")
_USED = re.compile(
    r"^[ \t*_]*used[ \t*_]*:(?:[^\n]*\Z|(?:[ \t*_]*none|[^\n]*\b[a-z]{1,3}-\d{5,})\b[^\n]*\n)",
    re.IGNORECASE | re.MULTILINE,
)
"""The line of citations: the last line, or one further up if it has an id or says that there is none."""
_NONE = re.compile(r"^[ \t*_]*used[ \t*_]*:[ \t*_]*none\b", re.IGNORECASE | re.MULTILINE)
_TAG = re.compile(r"\[?\b([a-z]{1,3}-\d{5,})\b\]?\W+(helpful|harmful|neutral)\b", re.IGNORECASE)
_LESSON = re.compile(
    r"^(?:[^\w\n]|[\d_])*lesson[ \t]*#?\d*[ \t*_]*:[ \t*_]*(.+)$",  # also as part of a list, numbered or not
    re.IGNORECASE | re.MULTILINE,
)
_SAME = re.compile(r"^\W*(\d+)\W+(same|new|conflict)\b", re.IGNORECASE | re.MULTILINE)


def with_playbook(artifact: Artifact, playbook: str, *, cite: bool = False, reflection: str = "") -> Artifact:
    """The artifact with the playbook, and the ``reflection`` on a first try, appended to each component."""
    parts = [f"{PLAYBOOK_HEADING}\n{playbook}"] if playbook else []
    if reflection:
        parts.append(f"## About the last try\n{reflection}")
    if cite and playbook:
        parts.append(CITE_RULE)
    return Artifact({name: "\n\n".join((text, *parts)) for name, text in artifact.items()}, "playbook")


def split_citation(reply: str) -> tuple[str, tuple[str, ...]]:
    """An answer without its line 'Used: …', and the ids of the notes it cites, there or anywhere else, each once.

    The ids are just `NOTHING_USED` if the answer says that it used none, and empty if it says nothing about it.
    """
    cited = tuple(dict.fromkeys(_ID.findall(reply)))
    if not cited and _NONE.search(reply):
        cited = (NOTHING_USED,)
    return _USED.sub("", reply.rstrip()).rstrip(), cited


def lesson_prompt(question: str, answer: str, feedback: str, used: str, *, right: bool) -> str:
    """Ask what can be learnt from an answer, and which advice helped or harmed."""
    task = "Say which advice helped." if right else "Say what went wrong, what to do instead, and which advice helped."
    return f"""{LESSON_TITLE}

A language model answered a question with a playbook of notes at hand; the answer was checked. {task}

## Question
{fence(question)}

## Answer
{fence(answer)}

{FEEDBACK_HEADING}
{fence(feedback)}

{USED_HEADING}
{fence(used)}

## What to write
- A line "Diagnosis:" with the reason for the result in one sentence.
- One line "Lesson:" for each thing to do, or to avoid, that would help with other questions of this kind; none if there
  is nothing new to learn.
- For each piece of advice above a line with its id and one of the words helpful, harmful, neutral."""


@dataclass(frozen=True, slots=True)
class Reflection:
    """The content of a reflection: lessons, and a tag for each bullet that it judged."""

    lessons: tuple[str, ...]
    tags: Mapping[str, Tag]


def parse_lesson(reply: str, known: Collection[str]) -> Reflection:
    """Lessons and tags; tags of unknown bullets are ignored.

    Raises:
        UnparsableReplyError: if there is neither diagnosis, nor lesson, nor tag.
    """
    lessons = tuple(dict.fromkeys(" ".join(lesson.split()) for lesson in _LESSON.findall(reply)))
    tags = {name.lower(): _TAGS[word.lower()] for name, word in _TAG.findall(reply) if name.lower() in known}
    if not lessons and not tags and "diagnosis" not in reply.lower():
        raise UnparsableReplyError("neither diagnosis nor lesson nor tag in the reply")
    return Reflection(lessons, tags)


def gather_prompt(samples: Sequence[Sequence[str]]) -> str:
    """Ask for one list of lessons in place of those of several samples (the reduce of Combee, arXiv 2604.04247)."""
    shown = "\n".join(f"- {lesson}" for lessons in samples for lesson in lessons)
    return f"""{GATHER_TITLE}

Several answers of a language model were looked at one by one. These are the lessons drawn from them; each stands as
often as it was drawn. Make one list of them that loses nothing.

{LESSONS_HEADING}
{fence(shown)}

## What to write
One line "Lesson:" for each thing to do or to avoid: lessons that say the same become one, those of only one answer
are kept, and where two contradict each other the one drawn more often stays."""


def parse_lessons(reply: str) -> tuple[str, ...]:
    """The lessons in a reply, each once.

    Raises:
        UnparsableReplyError: if there is none.
    """
    lessons = tuple(dict.fromkeys(" ".join(lesson.split()) for lesson in _LESSON.findall(reply)))
    if not lessons:
        raise UnparsableReplyError("no lesson in the reply")
    return lessons


def curate_prompt(playbook: str, lessons: Sequence[str], sections: Sequence[str], tokens: tuple[int, int]) -> str:
    """Ask for operations that add lessons to a playbook. ``tokens``: how many it has, and how many it may have."""
    shown = "\n".join(f"- {lesson}" for lesson in lessons)
    return f"""{CURATE_TITLE}

A playbook of short notes helps a language model with its work. Each note has an id, and counts of how often it helped
and harmed. Lessons have come in. Change the playbook so that it holds what is new in them.

{PLAYBOOK_HEADING}
{fence(playbook)}

{LESSONS_HEADING}
{fence(shown)}

## What to write
One JSON list in a fenced block, and nothing after it. Each entry is one of
- {{"op": "ADD", "section": "...", "text": "..."}}: a new note; sections: {", ".join(sections)}
- {{"op": "UPDATE", "id": "...", "text": "..."}}: a note in better words
- {{"op": "MERGE", "ids": ["...", "..."], "text": "..."}}: notes that say the same, as one
- {{"op": "DELETE", "id": "..."}}: a note that is wrong or harms more than it helps
A note is one line, and helps with other questions too. Add nothing that is there already; [] if nothing is new.
The playbook has about {tokens[0]} tokens and may have {tokens[1]}."""


@dataclass(frozen=True, slots=True)
class CuratorRequest:
    """An operation on the playbook as a curator's reply asks for it, not yet checked against the playbook."""

    verb: Literal["ADD", "UPDATE", "MERGE", "DELETE"]
    ids: tuple[str, ...]
    section: str
    text: str


def parse_curator_requests(reply: str) -> tuple[list[CuratorRequest], int]:
    """The operations that can be read, and the number of those that can't.

    Raises:
        UnparsableReplyError: if there is no JSON list in the reply.
    """
    entries = _json_list(reply)
    requests = [request for entry in entries if (request := _curator_request(entry)) is not None]
    return requests, len(entries) - len(requests)


def _json_list(reply: str) -> list[JSON]:
    found = read_json(reply)
    operations = found.get("operations") if isinstance(found, dict) else found
    if isinstance(operations, list):
        return operations
    raise UnparsableReplyError("no JSON list of operations in the reply")


def _curator_request(entry: JSON) -> CuratorRequest | None:
    if not isinstance(entry, dict):
        return None
    text = _SHOWN_COUNTERS.sub("", " ".join(str(entry.get("text") or "").split()))
    section = str(entry.get("section") or "")
    match str(entry.get("op")).upper(), entry.get("id"), entry.get("ids"):
        case "ADD", _, _ if text:
            return CuratorRequest("ADD", (), section, text)
        case "UPDATE", str(name), _ if text:
            return CuratorRequest("UPDATE", (_plain(name),), "", text)
        case "DELETE", str(name), _:
            return CuratorRequest("DELETE", (_plain(name),), "", "")
        case "MERGE", _, list(names) if text and len(ids := tuple(dict.fromkeys(map(_plain, names)))) > 1:
            return CuratorRequest("MERGE", ids, "", text)
    return None


def _plain(name: JSON) -> str:
    """An id, which a reply may have in brackets, as prompts do."""
    return str(name).strip(" []").lower()


def merge_prompt(texts: Sequence[str]) -> str:
    """Ask for one piece of advice in place of several that say nearly the same."""
    shown = "\n".join(f"- {text}" for text in texts)
    return f"""{MERGE_TITLE}

These notes of a playbook say nearly the same. Write the one that stands for all of them.

{ADVICE_HEADING}
{fence(shown)}

## What to write
One line in a fenced block and nothing after it."""


def compare_prompt(new: Sequence[str], noted: Sequence[str]) -> str:
    """Ask how new advice relates to what was noted while it was written (FlashEvolve §3.2, *Reflective Async*)."""
    first = "\n".join(f"{number}. {text}" for number, text in enumerate(new, 1))
    second = "\n".join(f"- {text}" for text in noted)
    return f"""{COMPARE_TITLE}

New notes for a playbook were being written while others were added to it.

{NEW_HEADING}
{fence(first)}

{NOTED_HEADING}
{fence(second)}

## What to write
For each new note a line with its number and one word: same (it is said already), new (it adds something), or conflict
(it contradicts what was noted)."""


def parse_comparison(reply: str, count: int) -> list[Relation]:
    """The relation of each of ``count`` notes; ``conflict``, which is tested further, where none can be read."""
    written = {int(number): word.lower() for number, word in _SAME.findall(reply)}
    return [_RELATIONS.get(written.get(number, ""), "conflict") for number in range(1, count + 1)]
