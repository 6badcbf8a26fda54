"""Reads what replies say about the notes of a playbook: citations, tags, lessons, and how notes relate to others."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Literal, get_args

from flowevolve._util.json_types import JSON
from flowevolve._util.thinking import split_thinking
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.prompts.reading.fields import lines_named, listed_under, paragraphs_under
from flowevolve.prompts.reading.json_replies import read_json
from flowevolve.prompts.reading.placeholders import is_placeholder

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
_BETWEEN = r"[\[\](),;&`*_ \t]"
_USED = re.compile(
    r"^[ \t*_]*used[ \t*_]*:(?:[^\n]*\Z|(?:[ \t*_]*none|[^\n]*\b[a-z]{1,3}-\d{5,})\b[^\n]*\n)",
    re.IGNORECASE | re.MULTILINE,
)
"""The line of citations: the last line, or one further up if it has an id or says that there is none."""
_NONE = re.compile(r"^[ \t*_]*used[ \t*_]*:[ \t*_]*none\b", re.IGNORECASE | re.MULTILINE)
_IDS = rf"{_BETWEEN}*{_ID.pattern}(?:{_BETWEEN}+(?:and{_BETWEEN}+)?{_ID.pattern})*"
_NO_IDS = r"[*_`]{0,3}[ \t]{0,4}[Nn]one\b(?=\W{0,9}\Z)"
_ONLY_IDS = (
    r"(?:[|>#•–—*-]{1,3}[ \t]{1,4})?[(\[*_`]{0,4}Used[*_`]{0,3}[ \t]?:"
    rf"(?:{_IDS}|{_NO_IDS})(?:{_BETWEEN}|\.)*$"
)
_ASIDE = re.compile(rf"^[ \t]{{0,8}}{_ONLY_IDS}\n?|(?:[ \t]{{1,8}}|(?=[(\[])){_ONLY_IDS}", re.MULTILINE)
"""Citations in an item of a list, in brackets, or after the answer on its line: only ids or, at the end, 'none'."""
_TAG_WORD = rf"(?:{'|'.join(_TAGS)})\b"
_ID_AND_TAG = rf"\[?\b([a-z]{{1,3}}-\d{{5,}})\b[\W_]+({_TAG_WORD})"
_TAG = re.compile(rf"{_ID_AND_TAG}(?!(?:[^\w/|]*[/|]|\W*or\b)\W*{_TAG_WORD})", re.IGNORECASE)
"""A tag, but not the first of several to choose from."""
_TAG_LINE = re.compile(rf"^\W*{_ID_AND_TAG}", re.IGNORECASE)
_RELATION = re.compile(r"^\W*(?:(?:new )?note\W*)?(\d+)\W+(same|new|conflict)\w*\b(.*)$", re.IGNORECASE | re.MULTILINE)
_LESSON = ("lesson", "new lesson", "key lesson", "lesson learned", "lesson learnt")
_LESSONS = ("lessons", "new lessons", "key lessons", "lessons learned", "lessons learnt")
_DIAGNOSIS = ("diagnosis", "error", "cause", "correct approach")
_OTHER_FIELDS = (*_DIAGNOSIS, "tags", "notes", "ratings", "ids")
"""The names of the other fields of a reply with lessons."""
_NONE_AT_ALL = (
    r"(?:none|n/?a|nothing(?: (?:new|more|else|further))?|no(?: (?:new|more|further|other|additional))? lessons?)"
    r"(?:(?: (?:is|are|was|were))?"
    r" (?:needed|required|necessary|learn(?:ed|t)|drawn|to (?:be )?(?:learn(?:ed|t)?|add|note))"
    r"(?: (?:here|from (?:this|it)(?: answer)?))?)?"
)
_NO_LESSON = re.compile(rf"\W*(?:{_NONE_AT_ALL}\W*)?", re.IGNORECASE)
_NO_LESSON_AS = re.compile(
    rf"\W*{_NONE_AT_ALL}[*_]*(?:\s*[.,;:(–—-]|\s+(?:as|because|since)\b)(?P<why>.*)", re.IGNORECASE
)
_ALL_RIGHT = re.compile(
    r"\b(?:is|are|was|were) (?:already |all |fully |entirely )?(?:right|correct|fine|enough|sufficient)\b"
    r"|\balready (?:says?|said|covers?|covered|states?|stated|known|noted|in)\b"
    r"|\b(?:answered|solved) correctly\b|\bno (?:errors?|mistakes?)\b",
    re.IGNORECASE,
)
"""The reasons that replies give for having no lesson. Without one of them, 'None, not even …' counts as advice."""
_MORE = re.compile(r"[.!?;:]\s+\S|\b(?:but|so|however|although|though|yet|still|except|unless)\b", re.IGNORECASE)
"""Signs that something follows a reason, which may be advice."""


def split_citation(reply: str) -> tuple[str, tuple[str, ...]]:
    """A reply without its citation 'Used: …', and the ids of the notes that it cites anywhere outside its thinking.

    The ids are just `NOTHING_USED` if the answer says that it used none, and empty if it says nothing about it.
    """
    answer = split_thinking(reply).answer
    cited = tuple(dict.fromkeys(_ID.findall(answer)))
    if not cited and (_NONE.search(answer) or _ASIDE.search(answer)):
        cited = (NOTHING_USED,)
    return _ASIDE.sub("", _USED.sub("", reply.rstrip()).rstrip()).rstrip(), cited


def tags_in(text: str, known: Collection[str]) -> dict[str, Tag]:
    """The tags of known notes, in lines or in JSON. A note that is tagged in two ways gets none."""
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
    """The lessons of `lessons_said`, each once, without placeholders and those that only say that there is none."""
    lessons = (" ".join(lesson.split()) for lesson in lessons_said(text))
    return tuple(dict.fromkeys(lesson for lesson in lessons if not _says_none(lesson) and not is_placeholder(lesson)))


def _says_none(lesson: str) -> bool:
    if _NO_LESSON.fullmatch(lesson):
        return True
    said = _NO_LESSON_AS.fullmatch(lesson)
    why = said["why"].strip() if said is not None else ""
    return _ALL_RIGHT.search(why) is not None and _MORE.search(why) is None


def lessons_said(text: str) -> list[str]:
    """The texts in lines 'Lesson: …', or below such lines in a list or a paragraph, or under that name in JSON."""
    lines = "\n".join(line for line in text.split("\n") if not _TAG_LINE.match(line))
    beside = lines_named(lines, *_LESSON)
    found = (
        [value for value in beside if value]
        or listed_under(lines, *_LESSON, *_LESSONS)
        or paragraphs_under(lines, (*_LESSON, *_LESSONS), _OTHER_FIELDS)
    )
    if not found and "{" in text:
        with suppress(UnparsableReplyError):
            found = _json_lessons(read_json(text))
    return found or beside


def _json_lessons(data: JSON) -> list[str]:
    """The texts under the names of lessons, alone or in lists."""
    if not isinstance(data, dict):
        return []
    named = [value for name, value in data.items() if name.lower().replace("_", " ") in (*_LESSON, *_LESSONS)]
    each = [one for value in named for one in (value if isinstance(value, list) else [value])]
    return [text for one in each for text in ([one] if isinstance(one, str) else _json_lessons(one))]


def diagnosis_in(text: str) -> Mapping[str, str]:
    """The texts of the fields of a diagnosis by name, from the line with the name or from below it, or from JSON."""
    others = (*_OTHER_FIELDS, *_LESSON, *_LESSONS)
    said = {name: [*lines_named(text, name), *paragraphs_under(text, [name], others)] for name in _DIAGNOSIS}
    found = {name: value for name, values in said.items() if (value := next(filter(None, values), ""))}
    if not found and "{" in text:
        with suppress(UnparsableReplyError):
            return _json_diagnosis(read_json(text))
    return found


def _json_diagnosis(data: JSON) -> Mapping[str, str]:
    named = {name.lower().replace("_", " "): value for name, value in data.items()} if isinstance(data, dict) else {}
    texts = {name: named.get(name) for name in _DIAGNOSIS}
    return {name: value.strip() for name, value in texts.items() if isinstance(value, str) and value.strip()}


def relations_in(reply: str, count: int) -> list[Relation | None]:
    """The relation that a reply gives for each of ``count`` numbered notes; None if it gives none, or several."""
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
    """The text of a note without the counters that prompts show after it."""
    return _SHOWN_COUNTERS.sub("", " ".join(text.split()))
