"""The prompts of algorithms that keep a playbook, and the parsers of their replies (roles: ACE, arXiv 2510.04618, §3).

The prompts have the same form as those of `flowevolve.prompts.reflection`. Parsers ignore what they can't read, down to
a single operation; a reply in which they can read nothing raises `UnparsableReplyError`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.core.templates import Prompt, Shorten, Templates
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reading.json_replies import answer_in, read_json, text_of
from flowevolve.prompts.reading.notes import (
    Relation,
    Tag,
    diagnosis_in,
    ids_in,
    lessons_in,
    lessons_said,
    relations_in,
    tags_in,
    without_counters,
)
from flowevolve.prompts.reading.placeholders import no_placeholder
from flowevolve.prompts.reading.talk import talks

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
DIAGNOSES_HEADING = "## What went wrong"
LAST_TRY_HEADING = "## About the last try"
SECTIONS_LABEL = "Sections:"
PLAYBOOK_RULE = "These notes were learnt from the scores of earlier answers. Go by those that fit what is asked."
LAST_TRY_RULE = "An earlier answer to this very question was not right. This was said of it:"
CITE_RULE = 'After the answer, add a last line with the ids of the notes that helped: "Used: ID, ID", or "Used: none".'
_VERB_NAMES = ("op", "type", "operation", "action")
_TEXT_NAMES = ("text", "content")
_IDLE = frozenset({"KEEP", "NONE", "NOOP", "SKIP"})
"""The operations with which a curator may leave a note as it is."""
_WORDS = re.compile(r"[a-z0-9]+|\w")
"""English words, and single letters of other languages, some of which put no spaces between words."""
_LONG = 4
"""Words with at least this many letters count as the same if they agree in this many at the beginning."""
_NOT_SAID = frozenset({"", "none", "n/a", "-"})


def with_playbook(
    templates: Templates, artifact: Artifact, playbook: str, *, cite: bool = False, reflection: str = ""
) -> Artifact:
    """The artifact with the playbook, and the ``reflection`` on an earlier try, appended to each component.

    With ``cite`` it also asks for the ids of the notes that helped.
    """
    parts = [templates.text("playbook", playbook=playbook)] if playbook else []
    if reflection:
        parts.append(templates.text("last_try", reflection=reflection))
    if cite and playbook:
        parts.append(templates.text("cite"))
    return Artifact({name: "\n\n".join((text, *parts)) for name, text in artifact.items()}, "playbook")


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer to draw a lesson from, with its question, how it was scored, and the notes that were at hand."""

    question: str
    answer: str
    feedback: str
    score: float
    right: bool
    used: str


def lesson_prompt(templates: Templates, checked: CheckedAnswer) -> Prompt:
    """Ask what can be learnt from an answer, and which advice helped or harmed."""
    return templates.write(
        "lesson",
        lambda shorten: {
            "result": "right" if checked.right else "wrong",
            "score": f"{checked.score:.4g}",
            "question": fence(shorten(checked.question)),
            "answer": fence(shorten(checked.answer)),
            "feedback": fence(shorten(checked.feedback)),
            "used": fence(checked.used) if checked.used else "",
        },
    )


@dataclass(frozen=True, slots=True)
class Reflection:
    """The content of a reflection: lessons, a tag for each bullet that it judged, and the reason for the result."""

    lessons: tuple[str, ...]
    tags: Mapping[str, Tag]
    diagnosis: str = ""

    @property
    def in_words(self) -> str:
        """The text for a second try."""
        return "\n".join([*([self.diagnosis] if self.diagnosis else []), *self.lessons])


def parse_lesson(reply: str, known: Collection[str], template: str = "") -> Reflection:
    """Lessons and tags; tags of unknown bullets are ignored, and so are lessons of the ``template``'s own example.

    Raises:
        UnparsableReplyError: if there is neither diagnosis, nor lesson, nor tag.
    """
    text = answer_in(reply)
    lessons, tags, diagnosis = _own_lessons(text, template), tags_in(text, known), diagnosis_in(text)
    if not (lessons or tags or diagnosis or lessons_said(text)):
        raise UnparsableReplyError("neither diagnosis nor lesson nor tag in the reply", Reason.MISSING)
    return Reflection(lessons, tags, _in_one_line(diagnosis))


def _own_lessons(text: str, template: str) -> tuple[str, ...]:
    """The lessons in a text, except those that are in the template, as part of its example of a reply."""
    examples = frozenset(lessons_in(template))
    return tuple(lesson for lesson in lessons_in(text) if lesson not in examples)


def _in_one_line(diagnosis: Mapping[str, str]) -> str:
    """The line 'Diagnosis: …', or else what the reply says about the error, its cause and the correct approach."""
    if whole := diagnosis.get("diagnosis"):
        return whole
    return " ".join(
        f"{name.capitalize()}: {value}"
        for name, value in diagnosis.items()
        if value.strip(" .").lower() not in _NOT_SAID
    )


def gather_prompt(templates: Templates, samples: Sequence[Sequence[str]]) -> Prompt:
    """Ask for one list of lessons in place of those of several samples (reduce step of Combee, arXiv 2604.04247)."""
    lessons = [lesson for each in samples for lesson in each]
    return templates.write("gather", lambda shorten: {"lessons": fence(_listed(lessons, shorten))})


def parse_lessons(reply: str, template: str = "") -> tuple[str, ...]:
    """The lessons in a reply, each once, without those of the ``template``'s own example.

    Raises:
        UnparsableReplyError: if there is none.
    """
    lessons = _own_lessons(answer_in(reply), template)
    if not lessons:
        raise UnparsableReplyError("no lesson in the reply", Reason.MISSING)
    return lessons


def curate_prompt(
    templates: Templates,
    playbook: str,
    lessons: Sequence[str],
    sections: Sequence[str],
    tokens: tuple[int, int],
    diagnoses: Sequence[str],
) -> Prompt:
    """Ask for operations that add lessons to a playbook. ``tokens``: how many it has, and how many it may have.

    ``diagnoses`` say what was wrong with the answers that the lessons were drawn from.
    """
    return templates.write(
        "curate",
        lambda shorten: {
            "playbook": fence(playbook or "(no notes yet)"),
            "lessons": fence(_listed(lessons, shorten)),
            "diagnoses": fence(_listed(diagnoses, shorten)) if diagnoses else "",
            "sections": ", ".join(sections),
            "first_section": sections[0],
            "tokens": str(tokens[0]),
            "most_tokens": str(tokens[1]),
        },
    )


@dataclass(frozen=True, slots=True)
class CuratorRequest:
    """An operation on the playbook as a curator's reply asks for it, not yet checked against the playbook."""

    verb: Literal["ADD", "UPDATE", "MERGE", "DELETE"]
    ids: tuple[str, ...]
    section: str
    text: str


def parse_curator_requests(reply: str, template: str = "") -> tuple[list[CuratorRequest], int]:
    """The operations that can be read, and the number of those that can't or are the ``template``'s own example.
    Operations that leave a note as it is are ignored.

    Raises:
        UnparsableReplyError: if there is no JSON list in the reply, or one in which no entry can be read.
    """
    entries = [entry for entry in _json_list(reply) if _verb(entry) not in _IDLE]
    examples = {request.text for request in _example_requests(template)} - {""}
    requests = [each for each in map(_curator_request, entries) if each is not None and each.text not in examples]
    if entries and not requests:
        raise UnparsableReplyError(
            'no entry of the JSON list has a known "op" and what goes with it; where nothing is to change, write []'
        )
    return requests, len(entries) - len(requests)


def _example_requests(template: str) -> list[CuratorRequest]:
    with suppress(UnparsableReplyError):
        return [each for each in map(_curator_request, _json_list(template)) if each is not None]
    return []


def _json_list(reply: str) -> list[JSON]:
    found = read_json(reply)
    if not isinstance(found, dict):
        return found
    operations = found.get("operations")
    if isinstance(operations, list):
        return operations
    if _curator_request(found) is not None:
        return [found]
    lists = [value for value in found.values() if isinstance(value, list)]
    if len(lists) == 1:
        return lists[0]
    raise UnparsableReplyError("no JSON list of operations in the reply", Reason.MISSING)


def _curator_request(entry: JSON) -> CuratorRequest | None:
    if not isinstance(entry, dict):
        return None
    text, verb = without_counters(_text(entry)), _verb(entry)
    section = str(entry.get("section") or "")
    ids = ids_in([*ids_in(entry.get("id")), *ids_in(entry.get("ids"))])
    if verb == "ADD" and text:
        return CuratorRequest("ADD", (), section, text)
    if verb == "UPDATE" and text and len(ids) == 1:
        return CuratorRequest("UPDATE", ids, "", text)
    if verb == "DELETE" and len(ids) == 1:
        return CuratorRequest("DELETE", ids, "", "")
    if verb == "MERGE" and text and len(ids) > 1:
        return CuratorRequest("MERGE", ids, "", text)
    return None


def _verb(entry: JSON) -> str:
    if not isinstance(entry, dict):
        return ""
    return next((str(entry[name]).upper() for name in _VERB_NAMES if entry.get(name)), "")


def _text(entry: Mapping[str, JSON]) -> str:
    """The text of an operation; empty if there is none, or a placeholder."""
    for name in _TEXT_NAMES:
        with suppress(UnparsableReplyError):
            return no_placeholder(text_of(entry, name), name)
    return ""


def merge_prompt(templates: Templates, texts: Sequence[str]) -> Prompt:
    """Ask for one piece of advice in place of several that say nearly the same."""
    return templates.write("merge_notes", lambda shorten: {"notes": fence(_listed(texts, shorten))})


def parse_merged(reply: str, texts: Sequence[str], template: str = "") -> str:
    """The one piece of advice that is to replace several, in one line.

    Raises:
        UnparsableReplyError: if there is none, it shares hardly a word with the several, it addresses whoever asked, or
            it is the ``template``'s own example.
    """
    merged = " ".join(read_instruction(reply).removeprefix("- ").split())
    words, known = set(_WORDS.findall(merged.lower())), set(_WORDS.findall(" ".join(texts).lower()))
    alike = 2 * len(words & known) >= len(words) or bool(_beginnings(words) & _beginnings(known))
    if not alike or talks(merged) or (merged in " ".join(template.split()) and merged not in texts):
        raise UnparsableReplyError(
            "the text does not say what the notes say that it is to stand for", Reason.WRONG_FORM
        )
    return merged


def _beginnings(words: Collection[str]) -> set[str]:
    """The beginnings of the long ones among the words, so that 'units' and 'unit' count as the same word."""
    return {word[:_LONG] for word in words if len(word) >= _LONG}


def compare_prompt(templates: Templates, new: Sequence[str], noted: Sequence[str]) -> Prompt:
    """Ask how new advice relates to what was noted while it was written (FlashEvolve §3.2, *Reflective Async*)."""
    numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(new, 1))
    return templates.write("compare", lambda shorten: {"new": fence(numbered), "noted": fence(_listed(noted, shorten))})


def _listed(texts: Sequence[str], shorten: Shorten) -> str:
    return "\n".join(f"- {shorten(text)}" for text in texts)


def parse_comparison(reply: str, count: int) -> list[Relation]:
    """The relation of each of ``count`` notes. If none can be read it is ``conflict``, which is tested further."""
    return [relation or "conflict" for relation in relations_in(reply, count)]
