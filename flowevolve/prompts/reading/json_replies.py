"""Reads JSON from replies, and the texts, words and objects in it. The readers raise `UnparsableReplyError`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from flowevolve._util.json_types import JSON
from flowevolve._util.thinking import split_thinking
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.prompts.reading.choosing import SENTENCES, Said, chosen, said_in
from flowevolve.prompts.reading.fences import Block, blocks
from flowevolve.prompts.reading.lenient_json import BadJSONError, decoded
from flowevolve.prompts.reading.placeholders import is_placeholder

Word = TypeVar("Word", bound=str)
Found = dict[str, JSON] | list[JSON]

_NEAR = 240
"""How many characters in front of a value in a text are searched for what they say of it."""
_CONTENT = re.compile(r"^\s*\[CONTENT\]\s*$(.*?)(?:^\s*\[/CONTENT\]\s*$|\Z)", re.MULTILINE | re.DOTALL)
_LATEX = re.compile(
    r"[\x08\f](?=[a-z])|\r(?=(?:ight|ho|m|angle|ceil)\b)"
    r"|\t(?=ext[a-z]*\{|(?:frac|heta|imes)\b|riangle)|\n(?=(?:abla|eq)\b)"
)
"""What JSON makes of the first two characters of a command of LaTeX whose backslash was not doubled."""
_ENDS_OF_TURN = re.compile(r"(?<![^\S\n])(?:(?:<[|｜][\w▁]+[|｜]>|</s>|<end_of_turn>)\s*)+\Z")
"""What ends a model's turn, which some servers leave at the end of its text: on a line of its own, or without a space
before it.
"""
_MOST_OF_ENDS = 200
"""How many characters at the end of a text are searched for it."""
_LAST_ANSWER = re.compile(r"^[ \t]*<answer>(?:(?!</?answer>).)*</answer>\s*\Z", re.DOTALL | re.MULTILINE)
_TRIES = 50
"""The search of a text for JSON ends after this many places at which none can be read."""


@dataclass(frozen=True, slots=True)
class _InProse:
    """A value in a text, its place, and what the words in front of it say of it.

    ``set_off``: it is not part of a sentence, as it begins on a new line or follows a colon.
    """

    start: int
    stop: int
    value: Found
    said: Said
    set_off: bool


def read_json(reply: str) -> Found:
    """The JSON object or array in a reply: in a fenced block, in [CONTENT] tags, or in the text.

    Of several blocks, the one that is said to be final or new is read. Of several values in the text it is the longest,
    unless a later one is said to be final.

    Raises:
        UnparsableReplyError: if there is none, it breaks off, or nothing says which of several is meant.
    """
    text = answer_in(reply)
    content = _CONTENT.search(text)
    if content is not None:
        text = content[1]
    whole = _whole(text)
    if whole is not None:
        return whole
    fenced = [(block, value) for block in blocks(text) if (value := _whole(block.body)) is not None]
    if fenced:
        return _of_several(fenced, text)
    found, problem = _in_prose(text)
    if found and problem is None:
        return _meant(found)
    if problem is not None and problem.ended:
        raise UnparsableReplyError(f"the JSON in the reply is not complete: {problem}", Reason.INCOMPLETE)
    if problem is not None:
        raise UnparsableReplyError(f"no JSON object or array in the reply can be read: {problem}")
    raise UnparsableReplyError("no JSON object or array in the reply", Reason.MISSING)


def read_object(reply: str) -> dict[str, JSON]:
    """As `read_json`, for a reply that has to be an object.

    Raises:
        UnparsableReplyError: if it is not.
    """
    found = read_json(reply)
    if isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict):
        return found[0]
    if not isinstance(found, dict):
        raise UnparsableReplyError("the reply's JSON is an array; an object was asked for")
    return found


def read_array(reply: str) -> list[JSON]:
    """As `read_json`, for a reply that has to be an array, which may be the only value of an object.

    Raises:
        UnparsableReplyError: if it is not.
    """
    found = read_json(reply)
    if isinstance(found, dict):
        values = list(found.values())
        if len(values) != 1 or not isinstance(values[0], list):
            raise UnparsableReplyError("the reply's JSON is an object; an array was asked for")
        return values[0]
    return found


def tool_calls(reply: str) -> list[dict[str, JSON]]:
    """Every JSON object with a ``tool`` in a reply, whatever is around it; none if the reply has no answer."""
    try:
        text = answer_in(reply)
    except UnparsableReplyError:
        return []
    calls: list[dict[str, JSON]] = []
    place = text.find("{")
    tries = _TRIES
    while place >= 0 and tries:
        try:
            value, end = decoded(text, place)
        except BadJSONError as error:
            end, tries = (len(text) if error.too_deep else place + 1), tries - 1
        else:
            if isinstance(value, dict) and "tool" in value:
                calls.append(value)
        place = text.find("{", end)
    return calls


def answer_in(reply: str) -> str:
    """The reply without its thinking, with plain line breaks. If the thinking never ends, an ``<answer>`` at its end.

    Raises:
        UnparsableReplyError: if nothing is left of it.
    """
    split = split_thinking(reply)
    answer = split.answer.replace("\r\n", "\n").strip()
    if end := _ENDS_OF_TURN.search(answer, max(0, len(answer) - _MOST_OF_ENDS)):
        answer = answer[: end.start()].rstrip()
    if answer:
        return answer
    if last := _LAST_ANSWER.search(split.thoughts):
        return last[0]
    if split.thoughts:
        raise UnparsableReplyError("the reply is thinking alone, and has no answer", Reason.ONLY_THINKING)
    raise UnparsableReplyError("the reply is empty", Reason.EMPTY)


def objects(values: object, name: str) -> list[dict[str, JSON]]:
    """The objects in the array ``values``; other elements are ignored. ``name`` is for the error.

    Raises:
        UnparsableReplyError: if it is no array.
    """
    if not isinstance(values, list):
        raise UnparsableReplyError(f"{name!r} is missing or no array")
    return [value for value in values if isinstance(value, dict)]


def text_of(data: Mapping[str, JSON], name: str) -> str:
    """The text under this name, without surrounding whitespace. A list of texts is read as the lines of one.

    Raises:
        UnparsableReplyError: if there is none, or it is empty.
    """
    value = data.get(name)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = "\n".join(str(each) for each in value)
    if not isinstance(value, str) or not value.strip():
        raise UnparsableReplyError(f"{name!r} is missing or no text")
    return _with_latex(value).strip()


def _with_latex(text: str) -> str:
    """The text with commands of LaTeX as they are meant; in JSON their backslashes have to be doubled."""
    return _LATEX.sub(lambda found: json.dumps(found[0])[1:-1], text)


def texts(values: object, name: str) -> tuple[str, ...]:
    """The texts in the array ``values``, each once and without surrounding whitespace; other elements and placeholders
    are ignored.

    Raises:
        UnparsableReplyError: if it is no array, or there is no text in it.
    """
    if not isinstance(values, list):
        raise UnparsableReplyError(f"{name!r} is missing or no array")
    written = (_with_latex(value).strip() for value in values if isinstance(value, str))
    found = tuple(dict.fromkeys(value for value in written if value and not is_placeholder(value)))
    if not found:
        raise UnparsableReplyError(f"no text among {name!r}")
    return found


def word_of(data: Mapping[str, JSON], name: str, known: Sequence[Word]) -> Word:
    """The word under this name, which has to be one of the known ones. Case does not matter.

    Raises:
        UnparsableReplyError: if it is missing or not known.
    """
    written = str(data.get(name, "")).strip().strip("*_`.").lower().replace(" ", "_").replace("-", "_")
    for word in known:
        if word == written:
            return word
    raise UnparsableReplyError(f"{name!r} is {written!r}; it has to be one of {', '.join(known)}")


def _of_several(fenced: Sequence[tuple[Block, Found]], text: str) -> Found:
    if all(value == fenced[0][1] for _, value in fenced):
        return fenced[0][1]
    block = chosen([block for block, _ in fenced], text, "JSON")
    return next(value for each, value in fenced if each is block)


def _whole(text: str) -> Found | None:
    """The object or array that a text consists of; None if it is anything else."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return None
    try:
        found, end = decoded(stripped)
    except BadJSONError:
        return None
    return found if isinstance(found, dict | list) and not stripped[end:].strip(" \t\r\n;") else None


def _in_prose(text: str) -> tuple[list[_InProse], BadJSONError | None]:
    """The objects and arrays that are not inside others, and the problem with the first that was meant as one and can't
    be read.

    Brackets in prose are skipped. The search ends at something that is nested too deeply.
    """
    found: list[_InProse] = []
    problem: BadJSONError | None = None
    place = 0
    tries = _TRIES
    while tries and (begun := _BRACKET.search(text, place)):
        meant = bool(_MEANT.match(text, begun.start()))
        try:
            value, place = decoded(text, begun.start(), lenient=meant)
        except BadJSONError as error:
            tries -= 1
            if error.too_deep:
                break
            if meant:
                problem = problem or error
            place = _end(text, begun.start()) if meant else begun.end()
            continue
        if isinstance(value, dict | list):
            since = found[-1].stop if found else 0
            above = text[max(since, begun.start() - _NEAR) : begun.start()]
            set_off = "\n" in above[len(above.rstrip()) :] or above.rstrip().endswith(":")
            said = said_in(SENTENCES.split(above.rstrip())[-1])
            found.append(_InProse(begun.start(), place, value, said, set_off))
    return found, problem


def _meant(found: Sequence[_InProse]) -> Found:
    """The value that is meant: the longest, if all others like it are at most half as long, as quotations are; or a
    later one that is said to be final.
    """
    longest = max(found, key=lambda each: each.stop - each.start)
    alike = [each for each in found if type(each.value) is type(longest.value) and each.value != longest.value]
    behind = [each for each in alike if each.start > longest.start]
    final = [each for each in behind if each.said == "final"]
    if longest.said != "final" and final and all(each.value == final[0].value for each in final):
        return final[0].value
    if any(2 * (each.stop - each.start) > longest.stop - longest.start for each in alike) or any(
        each.said == "final" or (each.set_off and (each.said == "new" or not each.value)) for each in behind
    ):
        raise UnparsableReplyError(
            "there are several JSON values in the reply, and nothing says which is meant", Reason.AMBIGUOUS
        )
    return longest.value


def _end(text: str, start: int) -> int:
    """Where something in brackets ends, judged by the brackets alone."""
    depth = 0
    for match in _ANY_BRACKET.finditer(text, start):
        depth += 1 if match[0] in "[{" else -1
        if depth == 0:
            return match.end()
    return len(text)


_BRACKET = re.compile(r"[\[{]")
_ANY_BRACKET = re.compile(r"[\[\]{}]")
_MEANT = re.compile(r"""\{\s*(?:["'“][^"'”\n]{0,80}["'”]|[\w$-]{1,80})\s*:|\[\s*[\[{"'“]""")
"""The beginning of what is meant as JSON, even where it can't be read."""
