"""Reads what replies say of the notes of a playbook: citations, tags, lessons, and how notes relate to others."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Literal, get_args

from flowevolve._util.json_types import JSON
from flowevolve._util.thinking import split_thinking
from flowevolve.core.model import UnparsableReplyError
from flowevolve.prompts.reading.fields import lines_named, listed_under
from flowevolve.prompts.reading.json_replies import read_json

NOTHING_USED = "none"
"""Stands in place of ids if an answer says that it used no note."""

Tag = Literal["helpful", "harmful", "neutral"]
_TAGS: Mapping[str, Tag] = {word: word for word in get_args(Tag)}
Relation = Literal["same", "new", "conflict"]
_RELATIONS: Mapping[str, Relation] = {word: word for word in get_args(Relation)}

_COUNTERS = r"(?: \(helpful (?P<up>\d+), harmful (?P<down>\d+)\))"
NOTE_LINE = re.compile(rf"^- \[(?P<id>[a-z]{{1,3}}-\d{{5,}})\] (?P<text>.*?){_COUNTERS}?$")
"""A bullet as prompts show it, with its counters or without."""

_SHOWN_COUNTERS = re.compile(rf"{_COUNTERS}$", re.IGNORECASE)
_ID = re.compile(r"\b[a-z]{1,3}-\d{5,}\b")
_ANY_ID = re.compile(_ID.pattern, re.IGNORECASE)
_USED = re.compile(
    r"^[ \t*_]*used[ \t*_]*:(?:[^\n]*\Z|(?:[ \t*_]*none|[^\n]*\b[a-z]{1,3}-\d{5,})\b[^\n]*\n)",
    re.IGNORECASE | re.MULTILINE,
)
"""The line of citations: the last line, or one further up if it has an id or says that there is none."""
_NONE = re.compile(r"^[ \t*_]*used[ \t*_]*:[ \t*_]*none\b", re.IGNORECASE | re.MULTILINE)
_TAG = re.compile(r"\[?\b([a-z]{1,3}-\d{5,})\b[\]*_`]*\W+(helpful|harmful|neutral)\b", re.IGNORECASE)
_RELATION = re.compile(r"^\W*(?:(?:new )?note\W*)?(\d+)\W+(same|new|conflict)\w*\b(.*)$", re.IGNORECASE | re.MULTILINE)
_NO_LESSON = frozenset({"", "none", "n/a", "nothing", "no new lesson", "nothing new", "-"})


def split_citation(reply: str) -> tuple[str, tuple[str, ...]]:
    """A reply without its line 'Used: …', and the ids of the notes it cites, there or anywhere else but in thinking.

    The ids are just `NOTHING_USED` if the answer says that it used none, and empty if it says nothing about it.
    """
    answer = split_thinking(reply).answer
    cited = tuple(dict.fromkeys(_ID.findall(answer)))
    if not cited and _NONE.search(answer):
        cited = (NOTHING_USED,)
    return _USED.sub("", reply.rstrip()).rstrip(), cited


def tags_in(text: str, known: Collection[str]) -> dict[str, Tag]:
    """The tags of known notes, in lines or in JSON. One that is tagged in two ways has none."""
    found: dict[str, set[Tag]] = {}
    for name, word in [*_TAG.findall(text), *_json_tags(text)]:
        if name.lower() in known:
            found.setdefault(name.lower(), set()).add(_TAGS[word.lower()])
    return {name: next(iter(tags)) for name, tags in found.items() if len(tags) == 1}


def _json_tags(text: str) -> list[tuple[str, str]]:
    with suppress(UnparsableReplyError):
        data = read_json(text) if "{" in text else {}
        lists = [data, *(data.values() if isinstance(data, dict) else ())]
        entries = [entry for each in lists if isinstance(each, list) for entry in each if isinstance(entry, dict)]
        named = [(str(entry.get("id", "")).strip("[] "), str(entry.get("tag", "")).lower()) for entry in entries]
        return [(name, word) for name, word in named if word in _TAGS]
    return []


def lessons_in(text: str) -> tuple[str, ...]:
    """The lessons, each once: lines 'Lesson: …', the list under 'Lessons:', or the texts under that name in JSON."""
    found = lines_named(text, "lesson") or listed_under(text, "lessons", "lesson", "new lessons", "lessons learned")
    if not found and "{" in text:
        with suppress(UnparsableReplyError):
            data = read_json(text)
            listed = data.get("lessons") if isinstance(data, dict) else None
            found = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
    lessons = (" ".join(lesson.split()) for lesson in found)
    return tuple(dict.fromkeys(lesson for lesson in lessons if lesson.strip("*_. ").lower() not in _NO_LESSON))


def relations_in(reply: str, count: int) -> list[Relation | None]:
    """What is said of each of ``count`` numbered notes; None where nothing is, or two things are."""
    said: dict[int, set[Relation]] = {}
    for number, word, rest in _RELATION.findall(split_thinking(reply).answer):
        also = {other for other in _RELATIONS if re.match(rf"\W*(?:or|/)\W*{other}\b", rest, re.IGNORECASE)}
        said.setdefault(int(number), set()).update(_RELATIONS[each] for each in {word.lower(), *also})
    return [next(iter(words)) if len(words := said.get(number, set())) == 1 else None for number in range(1, count + 1)]


def ids_in(value: JSON) -> tuple[str, ...]:
    """The ids in a list or in a text, which may have brackets around them, as prompts do."""
    each = value if isinstance(value, list) else _ANY_ID.findall(value) or [value] if isinstance(value, str) else []
    return tuple(dict.fromkeys(str(name).strip(" []").lower() for name in each))


def without_counters(text: str) -> str:
    """The text of a note without the counters that prompts show behind it."""
    return _SHOWN_COUNTERS.sub("", " ".join(text.split()))
