"""Reads the answer in a reply: the part that is marked as such, or else the whole reply without its thinking."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from flowevolve._util.json_types import JSON
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.prompts.reading.fences import blocks
from flowevolve.prompts.reading.fields import marked_fields, plain, tagged
from flowevolve.prompts.reading.json_replies import answer_in
from flowevolve.prompts.reading.lenient_json import BadJSONError, decoded

_TAGS = ("answer", "final_answer", "final answer", "final-answer")
_KEYS = ("final_answer", "answer", "final answer")
_THOUGHTS = frozenset({"reasoning", "rationale", "thoughts", "thought", "thinking", "analysis", "scratchpad", "steps"})
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_STATED = re.compile(
    r"^[ \t>*_#-]*(?:(?:so|thus|therefore|hence),?[ \t]+)?(?:the[ \t]+)?(?:my[ \t]+)?"
    r"(?:final[ \t]+)?answer"
    r"(?:[ \t*_]+is\b[ \t*_]*[:=：]?|[ \t*_]*(?:[:=：]|$)|(?=[ \t*_]+\S+[ \t]*$))[ \t*_]*(?P<value>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_WORD_AND_STOP = re.compile(r"[\w$%+-][\w$%+,*-]*\.")
_MOST_LINES = 3


def read_answer(reply: str) -> str:
    r"""The text in ``<answer>`` tags, in the ``[[ ## answer ## ]]`` or last field, under the JSON key ``answer``, after
    a last line 'Final answer:', or in the last ``\boxed{…}``: the first of these that the reply has. Without any, the
    whole reply but for its thinking.

    Raises:
        UnparsableReplyError: if there is nothing but thinking, or the answer breaks off or is empty.
    """
    text = answer_in(reply).strip()
    tags = tagged(text, *_TAGS)
    if tags:
        return _not_empty(tags[-1])
    fields = marked_fields(text)
    if fields:
        named = [fields[name] for name in ("answer", "final_answer") if name in fields]
        others = [value for name, value in fields.items() if name not in _THOUGHTS]
        if not named and not others:
            raise UnparsableReplyError(
                "there are thoughts in the reply, but no field with the answer", Reason.INCOMPLETE
            )
        return _not_empty((named or others)[-1])
    for way in (_in_json, _stated, _last_boxed):
        found = way(text)
        if found is not None:
            return _not_empty(found)
    return text


def _not_empty(value: str) -> str:
    if not value.strip():
        raise UnparsableReplyError("the answer in the reply is empty", Reason.EMPTY)
    return value.strip()


def _in_json(text: str) -> str | None:
    """The answer in a reply that is one JSON object, fenced or not."""
    found = blocks(text)
    inner = found[0].body.strip() if len(found) == 1 and found[0].start == 0 else text
    if not inner.startswith("{"):
        return None
    try:
        data, end = decoded(inner)
    except BadJSONError:
        return None
    if not isinstance(data, dict) or inner[end:].strip():
        return None
    by_name = {name.lower(): value for name, value in data.items()}
    return next((_as_text(by_name[name]) for name in _KEYS if name in by_name), None)


def _as_text(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _last_boxed(text: str) -> str | None:
    found = list(_BOXED.finditer(text))
    if not found:
        return None
    depth = 1
    for place in range(found[-1].end(), len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[found[-1].end() : place]
    raise UnparsableReplyError("the answer in the reply breaks off", Reason.INCOMPLETE)


def _stated(text: str) -> str | None:
    """The answer after a last 'Answer:' or 'Final answer:', on that line or on a few lines below it; None if there is
    none, or more text follows.
    """
    found = list(_STATED.finditer(text))
    if not found:
        return None
    value = found[-1]["value"].strip()
    rest = text[found[-1].end() :].strip()
    lines = [line.strip() for line in rest.split("\n") if line.strip(" \t#*_-=")]
    fenced = blocks(rest)
    if value.strip("*_#: "):
        if lines and not _leads(found, text):
            return None
    elif len(fenced) == 1 and fenced[0].start == 0 and fenced[0].stop == len(rest.split("\n")):
        return fenced[0].body
    elif 0 < len(lines) <= _MOST_LINES:
        value = "\n".join(line.lstrip("# ") for line in lines)
    else:
        return None
    boxed = _last_boxed(value) if _BOXED.search(value) else None
    return boxed or _undecorated(value)


def _leads(found: Sequence[re.Match[str]], text: str) -> bool:
    """Whether the answer is stated only once, in the first line, so that what follows are reasons."""
    label = found[0][0].removesuffix(found[0]["value"])
    return len(found) == 1 and not text[: found[0].start()].strip() and ":" in label


def _undecorated(value: str) -> str:
    bare = plain(value).strip().strip("*").strip()
    return bare[:-1].rstrip("*") if _WORD_AND_STOP.fullmatch(bare) else bare
