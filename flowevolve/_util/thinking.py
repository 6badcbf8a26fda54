"""Takes the thinking off a reply, as models write it between tags such as ``<think>`` and ``</think>``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAMES = "think|thinking|thought|thoughts|reasoning|scratchpad"
_TAG = re.compile(
    rf"<(?P<end>/?)(?:seed:)?(?:{_NAMES})(?:[ \t][^<>\n]*)?>|\[(?P<end2>/?)THINK\]|◁(?P<end3>/?)think▷", re.IGNORECASE
)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})([^`]*)$")
_TICK = re.compile(r"(?<!`)`(?!`)")
_LAST_ANSWER = re.compile(
    r"^[ \t]*<answer>(?:(?!</?answer>).)*</answer>\s*\Z", re.MULTILINE | re.DOTALL | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Thinking:
    """A reply in two parts: what the model thought, and what it says."""

    thoughts: str
    answer: str


@dataclass(frozen=True, slots=True)
class _Tag:
    start: int
    end: int
    closes: bool
    leads: bool
    """Whether nothing but space stands before it on its line."""
    alone: bool
    """Whether nothing else stands on its line."""
    fenced: bool
    """Whether it is in a fenced block."""
    quoted: bool
    """Whether it is between backticks on its line."""


def split_thinking(text: str) -> Thinking:
    """The thoughts and the answer of a reply.

    An opening tag counts where it begins a line outside of fenced blocks, so that an instruction may speak of such
    tags. All before a closing tag without an opening one is thinking, as the opening one is often part of the prompt.
    Thinking that is never closed takes all the rest, unless that ends with a whole ``<answer>``.
    """
    thoughts: list[str] = []
    rest = text
    stray = _stray_close(rest)
    if stray is not None:
        thoughts.append(rest[: stray.start])
        rest = rest[stray.end :]
    kept: list[str] = []
    place = 0
    for opening, closing in _spans(rest):
        if opening.start < place:
            continue
        kept.append(rest[place : opening.start])
        if closing is None:
            answer = _LAST_ANSWER.search(rest, opening.end)
            place = answer.start() if answer else len(rest)
            thoughts.append(rest[opening.end : place])
        else:
            thoughts.append(rest[opening.end : closing.start])
            place = closing.end
    kept.append(rest[place:])
    if not thoughts:
        return Thinking("", text)
    return Thinking("\n".join(each.strip() for each in thoughts if each.strip()), "".join(kept).strip())


def _spans(text: str) -> Iterator[tuple[_Tag, _Tag | None]]:
    """Each opening tag that counts, with the closing one that ends it: the one that pairs with it, else the last."""
    tags = list(_tags(text))
    place = 0
    while place < len(tags):
        opening = tags[place]
        if opening.closes or opening.fenced or not opening.leads:
            place += 1
            continue
        end = _partner(tags, place)
        yield opening, None if end is None else tags[end]
        place = len(tags) if end is None else end + 1


def _partner(tags: list[_Tag], opening: int) -> int | None:
    depth = 0
    last = None
    for place in range(opening, len(tags)):
        tag = tags[place]
        if tag.quoted:
            continue
        depth += -1 if tag.closes else 1
        if tag.closes:
            last = place
        if depth == 0:
            return place
    return last


def _stray_close(text: str) -> _Tag | None:
    """The last closing tag that no opening one goes with."""
    depth = 0
    found = None
    for tag in _tags(text):
        if not tag.closes:
            depth += 1
        elif depth:
            depth -= 1
        elif tag.alone or not (tag.fenced or tag.quoted):
            found = tag
    return found


def _tags(text: str) -> Iterator[_Tag]:
    marks = ""
    start = 0
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence is not None:
            if not marks:
                marks = fence[1]
            elif fence[1].startswith(marks) and not fence[2].strip():
                marks = ""
        yield from _tags_in(line, start, fenced=bool(marks))
        start += len(line) + 1


def _tags_in(line: str, start: int, *, fenced: bool) -> Iterator[_Tag]:
    found = list(_TAG.finditer(line))
    ticks = place = 0
    for match in found:
        ticks += len(_TICK.findall(line, place, match.start()))
        place = match.end()
        leads = match is found[0] and not line[: match.start()].strip()
        alone = leads and not line[match.end() :].strip()
        closes = bool(match["end"] or match["end2"] or match["end3"])
        yield _Tag(start + match.start(), start + match.end(), closes, leads, alone, fenced, ticks % 2 == 1)
