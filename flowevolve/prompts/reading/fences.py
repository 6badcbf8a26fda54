"""Fenced blocks: writes them into prompts, and reads them from replies, where they have every possible form."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

_BLOCK = re.compile(
    r"^[ \t]*(?P<marks>`{3,})(?P<label>[^\n`]*)\n(?P<body>.*?)\n?^[ \t]*(?P=marks)`*[ \t]*$", re.MULTILINE | re.DOTALL
)
_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)$")
_WORD = re.compile(r"[\w.+#:/\\{}=-]+$")
_PROPERTY = re.compile(r"""[\w.-]+\s*[=:]\s*(".*"|'.*'|\S+)$|\{.*\}$|[\w./\\-]+\.\w+$""")
_DEEP = 4
"""A fence that is indented by this much more than that of its block is part of the text (as in CommonMark)."""
TEXT_LABELS = frozenset(
    {"", "text", "txt", "plaintext", "plain", "markdown", "md", "instruction", "instructions", "prompt"}
)
"""Labels of blocks that hold words, not code."""
LANGUAGES = frozenset(
    {"python", "py", "python3", "cpp", "c++", "cc", "c", "java", "javascript", "js", "typescript", "ts", "go", "rust"}
    | {"rs", "json", "jsonc", "json5", "yaml", "yml", "toml", "xml", "html", "bash", "sh", "shell", "console", "zsh"}
    | {"diff", "patch", "sql", "latex", "tex", "ruby", "php", "csharp", "cs", "kotlin", "swift", "scala", "r", "julia"}
    | {"mermaid", "output", "code"}
)


def fence(text: str, label: str = "") -> str:
    """``text`` in a fenced block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0) if "`" in text else 0
    marks = "`" * max(3, longest + 1)
    return f"{marks}{label}\n{text}\n{marks}"


def labelled_blocks(text: str) -> list[tuple[str, str]]:
    """What `fence` wrote into a prompt, as (label, text), in order."""
    return [(match["label"].strip(), match["body"]) for match in _BLOCK.finditer(text)]


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a reply, from line ``start`` to before line ``stop``, fences included."""

    label: str
    body: str
    start: int
    stop: int
    closed: bool = True

    @property
    def language(self) -> str:
        """The label as the name of a language."""
        return self.label.split(maxsplit=1)[0].strip("{}.").lower() if self.label else ""


def blocks(text: str, labels: Collection[str] = ()) -> list[Block]:
    """The blocks of a reply, in order. A block inside another one is part of that one's text.

    Fences are three or more backticks or tildes. The words on an opening fence are the block's label if they are a
    single word, begin with the name of a language, or are one of ``labels``; otherwise they are part of its text. The
    last block may lack its end.
    """
    scan = _Scan(text.split("\n"), labels)
    found = scan.blocks(nesting=True)
    if found and not found[-1].closed and scan.reopened:
        return scan.blocks(nesting=False)
    return found


def ends_outside_blocks(text: str) -> bool:
    """Whether all blocks of a reply are closed."""
    return all(block.closed for block in blocks(text))


def unwrapped(text: str) -> str:
    """The content of a Markdown block around a whole reply, if it has blocks itself; else the text unchanged."""
    found = blocks(text)
    if len(found) != 1 or found[0].language not in ("markdown", "md") or outside(text, found).strip():
        return text
    return found[0].body if blocks(found[0].body) else text


def outside(text: str, found: Sequence[Block]) -> str:
    """The text around the blocks."""
    lines = text.split("\n")
    inside = {number for block in found for number in range(block.start, block.stop)}
    return "\n".join(line for number, line in enumerate(lines) if number not in inside)


@dataclass(slots=True)
class _Open:
    indent: int
    marks: str
    label: str
    lines: list[str]
    start: int
    depth: int = 0


class _Scan:
    """One pass over the lines of a reply. ``reopened``: a block contained a fence that opens one of the same label."""

    def __init__(self, lines: Sequence[str], labels: Collection[str]) -> None:
        self._lines = lines
        self._labels = labels
        bare = (number for number, line in enumerate(lines) if (found := _FENCE.match(line)) and not found[3].strip())
        self._last_bare = max(bare, default=-1)
        self.reopened = False

    def blocks(self, *, nesting: bool) -> list[Block]:
        found: list[Block] = []
        current: _Open | None = None
        for number, line in enumerate(self._lines):
            match = _FENCE.match(line)
            if current is None:
                current = None if match is None else self._open(match, number, found)
                continue
            step = self._step(current, match)
            if step == "open" and current.depth == 0 and current.label and self._label(match)[0] == current.label:
                self.reopened = True
                if not nesting and match is not None:
                    found.append(_closed(current, number, closed=False))
                    current = self._open(match, number, found)
                    continue
            current.depth += {"open": 1, "close": -1}.get(step, 0)
            if current.depth < 0:
                found.append(_closed(current, number + 1))
                current = None
            elif self._glued(line, current, number):
                current.lines.append(line.rstrip().removesuffix(current.marks))
                found.append(_closed(current, number + 1))
                current = None
            else:
                current.lines.append(line)
        if current is not None:
            found.append(_closed(current, len(self._lines), closed=False))
        return found

    def _open(self, match: re.Match[str], number: int, found: list[Block]) -> _Open | None:
        indent, marks, rest = match[1], match[2], match[3]
        whole = rest.rstrip()
        if whole.endswith(marks) and whole[: -len(marks)].strip():
            if marks[0] not in whole[: -len(marks)]:
                found.append(Block("", whole[: -len(marks)].strip(), number, number + 1))
            return None
        if marks[0] == "`" and "`" in rest:
            return None  # a code span at the start of a line
        label, text = self._label(match)
        return _Open(len(indent.expandtabs(4)), marks, label, [text] if text else [], number)

    def _label(self, match: re.Match[str] | None) -> tuple[str, str]:
        """The label on an opening fence, and the text there that belongs to the block."""
        rest = "" if match is None else match[3].strip()
        first, _, more = rest.partition(" ")
        if rest in self._labels or not more.strip():
            return (rest, "") if rest in self._labels or _WORD.match(rest) or not rest else ("", rest)
        if first.strip("{}.").lower() in LANGUAGES | TEXT_LABELS - {""}:
            return (rest, "") if all(map(_PROPERTY.match, more.split())) else (first, more.strip())
        return "", rest

    def _step(self, current: _Open, match: re.Match[str] | None) -> str:
        if match is None or not match[2].startswith(current.marks):
            return "text"
        if len(match[1].expandtabs(4)) >= current.indent + _DEEP:
            return "text"
        if not match[3].strip():
            return "close"
        label, text = self._label(match)
        return "open" if label and not text and "`" not in match[3] else "text"

    def _glued(self, line: str, current: _Open, number: int) -> bool:
        """Whether this line ends with the closing fence of the block. It can't as long as a closing fence on a line of
        its own still follows.
        """
        ended = line.rstrip()
        return (
            number > self._last_bare
            and current.depth == 0
            and ended.endswith(current.marks)
            and not ended.endswith(f"{current.marks}{current.marks[0]}")
            and ended.count(current.marks) % 2 == 1
            and ended.strip() != current.marks
        )


def _closed(block: _Open, stop: int, *, closed: bool = True) -> Block:
    lines = [_less(line, block.indent) for line in block.lines] if block.indent else block.lines
    return Block(block.label, "\n".join(lines), block.start, stop, closed)


def _less(line: str, indent: int) -> str:
    """A line without the indentation of its block."""
    kept = line.lstrip(" \t")
    space = len(line[: len(line) - len(kept)].expandtabs(4))
    return (
        line[indent:]
        if line[:indent].isspace() and space >= indent and "\t" not in line[:indent]
        else (" " * max(0, space - indent) + kept if space else line)
    )
