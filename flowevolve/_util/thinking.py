"""Separates what a model thought from what it answered in the text of one reply.

Servers without a reasoning parser send both as one text, with tags around the thoughts (``<think>``, ``<thinking>``,
``<reasoning>``, ``<thought>``, ``[THINK]``) or with the channels of gpt-oss. The forms are accepted as models write
them: the opening tag may be missing, because chat templates write it themselves; there may be several blocks, one
inside another, and the last may be cut off. A tag counts as ordinary text where it is quoted, in inline code, inside a
fenced block or an edit, or in the middle of a sentence. So does a pair of tags after other text with nothing but a
placeholder between them ("<think>...</think>").

The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flowevolve._util.values import value


@value
class Thinking:
    """A reply in two parts: what the model thought, and what it answered."""

    thoughts: str
    answer: str


def split_thinking(text: str) -> Thinking:
    """Split a reply. A reply without thinking is all answer; one whose thinking was cut off has an empty answer."""
    if "<" not in text and "[" not in text and "analysis" not in text:  # as most replies are
        return Thinking("", text)
    return _channels(text) or _TagReader(text).read() or Thinking("", text)


# The form of gpt-oss (harmony): each message is <|start|>assistant<|channel|>NAME<|message|>TEXT<|end|>.
_CHANNEL = re.compile(
    r"(?:<\|start\|>\w*+)?<\|channel\|>\s*+(\w++)[^<\n]*+(?:<\|constrain\|>[^<\n]*+)?<\|message\|>", re.ASCII
)
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return|call|start)\|>(?:assistant)?")
# The same where a server has removed the markers: "analysisThe user wants …assistantfinalThe answer".
_BARE_CHANNELS = re.compile(r"\s*analysis(?=[A-Z])(.*?)assistantfinal(.*)", re.DOTALL)


def _channels(text: str) -> Thinking | None:
    """Split a text by the channels of gpt-oss; None if it has none. Only the channel ``final`` is the answer."""
    starts = list(_CHANNEL.finditer(text))
    if not starts:
        bare = _BARE_CHANNELS.match(text)
        return None if bare is None else Thinking(bare[1].strip(), bare[2].strip())
    before = text[: starts[0].start()]
    if before.strip() and (before[-1] in _QUOTES or before.count("```") % 2 or all(m[1] != "final" for m in starts)):
        return None
    ends = [*(start.start() for start in starts[1:]), len(text)]
    thoughts, answers = [before], [""]
    for start, end in zip(starts, ends, strict=True):
        message = _END_OF_MESSAGE.split(text[start.end() : end], maxsplit=1)[0]
        (answers if start[1] == "final" else thoughts).append(message)
    return Thinking(_joined(thoughts), _joined(answers))


_TOKENS = re.compile(
    r"""^[ \t]*+(?P<fence>`{3,}|~{3,})     # a line that opens or ends a fenced block
      (?P<label>(?:(?!</(?:think|thinking|reasoning|thoughts?|seed:think)[ \t]*+>|\[/(?-i:THINK)\])[^\n])*+)
    | ^[ \t]*+(?:<{5,9}[ \t]*+(?P<edit>SEARCH)|>{5,9}[ \t]*+(?P<edit_end>REPLACE))\b
    | (?P<ticks>`{1,2})(?!`)[^`\n]*(?P=ticks)               # inline code, in which tags are text
    | (?P<line_start>^[ \t]*+)?
      (?: <(?P<slash>/?)(?P<name>think|thinking|reasoning|thoughts?|seed:think)[ \t]*+>
      | \[(?P<bracket_slash>/?)(?P<bracket_name>(?-i:THINK))\] )
      (?P<line_end>(?=[ \t]*+(?:\n|\Z)))?
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_EDIT = "<<<"
"""Used in place of a fence's marks while inside an edit."""
_TEXT = re.compile(r"\S")
_QUOTES = "\"'`"
_ENDS_OF_SENTENCES = (".", "!", "?", ":", ";", ")", "…", ">")
_LONGEST_PLACEHOLDER = 60
_PLACEHOLDER = re.compile(r"[.…/,;|&-]*|,?\s*(?:and|or|to)|[\[{(][^\])}]*[\])}]", re.IGNORECASE)
"""Placeholders between the two tags of an example: "<think>...</think>", "<think>{your thoughts}</think>"."""


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    closes: bool
    start: int
    end: int
    at_line_start: bool
    at_line_end: bool


class _TagReader:
    """Goes through a text once, from tag to tag, and adds what lies between to the thoughts or to the answer."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._thoughts: list[str] = []
        self._answer: list[str] = []
        self._rest = 0
        """Where the text begins that was added to neither thoughts nor answer yet."""
        self._first = self._next_text(0)
        """The first character of that text that is not white space."""
        self._found = False
        self._opened: _Tag | None = None
        """The tag whose thoughts we are in."""
        self._inner: list[str] = []
        """The names of other tags opened within these thoughts."""
        self._mentioned: _Tag | None = None
        """The last opening tag in the middle of a sentence."""
        self._fence = ""
        """The marks that opened the fenced block we are in."""
        self._fence_has_tags = False
        self._broken_off: _Tag | None = None
        """A closing tag on a line of its own inside a fenced block, which ends the thoughts if the block never ends."""

    def read(self) -> Thinking | None:
        """The two parts; None if there is no thinking."""
        for token in _TOKENS.finditer(self._text):
            if token["fence"]:
                self._take_fence(token["fence"], token["label"])
            elif token["edit"] or token["edit_end"]:
                self._take_edit(ends=bool(token["edit_end"]))
            elif not token["ticks"]:
                tag = _tag(token)
                if not self._is_quoted(tag):
                    self._take(tag)
        end = len(self._text)
        if self._opened is not None:
            self._thought(self._opened.start, self._opened.end, end, end)
        elif self._broken_off is not None:
            self._end_all_before(self._broken_off)
        if not self._found:
            return None
        return Thinking(_joined(self._thoughts), "".join([*self._answer, self._text[self._rest :]]).strip())

    def _take_fence(self, marks: str, label: str) -> None:
        if self._opened is not None:
            return
        if not self._fence:
            self._fence, self._fence_has_tags = marks, False
        elif label.strip():  # another block begins: if thoughts broke off in the one we are in, it never ended
            if self._broken_off is not None:
                self._end_all_before(self._broken_off)
                self._fence, self._fence_has_tags = marks, False
        elif marks.startswith(self._fence):
            self._fence, self._broken_off = "", None

    def _take_edit(self, *, ends: bool) -> None:
        """A line that begins or ends an edit, in which tags are text as in a fenced block."""
        if ends and self._fence == _EDIT:
            self._fence, self._broken_off = "", None
        elif not ends and self._fence in ("", _EDIT):
            self._take_fence(_EDIT, _EDIT)

    def _take(self, tag: _Tag) -> None:
        if self._opened is not None:
            self._take_within_thoughts(self._opened, tag)
        elif self._fence:
            if tag.closes and tag.at_line_start and tag.at_line_end and not self._fence_has_tags:
                self._broken_off = tag
            self._fence_has_tags = True
        elif tag.closes:
            self._close(tag)
        elif self._begins_thoughts(tag):
            self._opened, self._inner, self._mentioned = tag, [], None
        else:
            self._mentioned = tag

    def _take_within_thoughts(self, opened: _Tag, tag: _Tag) -> None:
        if not tag.closes:
            if tag.name != opened.name:
                self._inner.append(tag.name)
        elif tag.name in self._inner:
            self._inner.remove(tag.name)
        else:
            self._opened = None
            if self._has_answer(opened) and self._is_example(opened, tag):
                return
            self._thought(opened.start, opened.end, tag.start, tag.end)

    def _close(self, tag: _Tag) -> None:
        """Without an opening tag, a closing one makes all before it thoughts, unless the tags are only mentioned."""
        mentioned, self._mentioned = self._mentioned, None
        if mentioned is None or "\n" in self._text[mentioned.end : tag.start]:
            self._end_all_before(tag)

    def _begins_thoughts(self, tag: _Tag) -> bool:
        if tag.at_line_start or tag.at_line_end or not self._has_answer(tag):
            return True
        return self._text[max(0, tag.start - 2) : tag.start].rstrip().endswith(_ENDS_OF_SENTENCES)

    def _has_answer(self, tag: _Tag) -> bool:
        """Whether there is a part of an answer before a tag."""
        return self._first < tag.start or bool(self._answer)

    def _is_example(self, opened: _Tag, tag: _Tag) -> bool:
        if tag.start - opened.end > _LONGEST_PLACEHOLDER:
            return False
        return _PLACEHOLDER.fullmatch(self._text[opened.end : tag.start].strip()) is not None

    def _end_all_before(self, tag: _Tag) -> None:
        self._thoughts += self._answer
        self._answer = []
        self._thought(self._rest, self._rest, tag.start, tag.end)
        self._mentioned, self._broken_off, self._fence = None, None, ""

    def _thought(self, before: int, start: int, end: int, after: int) -> None:
        """Add the text from ``start`` to ``end`` to the thoughts, and the rest up to ``before`` to the answer."""
        if self._first < before:
            self._answer.append(self._text[self._rest : before])
        self._thoughts.append(self._text[start:end])
        self._rest, self._found = after, True
        self._first = self._next_text(after)

    def _next_text(self, start: int) -> int:
        found = _TEXT.search(self._text, start)
        return len(self._text) if found is None else found.start()

    def _is_quoted(self, tag: _Tag) -> bool:
        before, after = self._text[max(0, tag.start - 1) : tag.start], self._text[tag.end : tag.end + 1]
        return before != "" and after != "" and before in _QUOTES and after in _QUOTES


def _tag(token: re.Match[str]) -> _Tag:
    return _Tag(
        name=(token["name"] or token["bracket_name"]).lower(),
        closes=bool(token["slash"] or token["bracket_slash"]),
        start=token.end("line_start") if token["line_start"] is not None else token.start(),
        end=token.end(),
        at_line_start=token["line_start"] is not None,
        at_line_end=token["line_end"] is not None,
    )


def _joined(parts: list[str]) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())
