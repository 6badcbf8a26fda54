"""Odd forms of replies with programs and edits: each means what the plain reply means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from flowevolve.programs.edits import MIDDLE_LINE, REPLACE_LINE, SEARCH_LINE
from flowevolve.prompts.programs import CODE_TITLE
from flowevolve.sim.worlds.code.prompt import read_prompt
from tests.support.odd_replies import EDIT, Form, Reply


def _each_edit(write: Callable[[str, str], str]) -> Form:
    def written(reply: Reply) -> str | None:
        if reply.kind != "edits":
            return None
        return EDIT.sub(lambda edit: write(edit[1], edit[2]), reply.text)

    return written


def _spaced(text: str) -> str:
    return "\n".join(f"{line}  " for line in text.split("\n"))


def marks(search: str, replace: str, marks: tuple[str, str, str] = (SEARCH_LINE, MIDDLE_LINE, REPLACE_LINE)) -> str:
    lines = [marks[0], search, marks[1], *([replace] if replace else []), marks[2]]
    return "\n".join(lines)


def _dedented(search: str, replace: str) -> str:
    lines = [line for line in [*search.split("\n"), *replace.split("\n")] if line.strip()]
    by = min(len(line) - len(line.lstrip(" ")) for line in lines)
    cut = ["\n".join(line[by:] for line in text.split("\n")) for text in (search, replace)]
    return marks(cut[0], cut[1])


def _all_dedented(reply: Reply) -> str | None:
    """None where without its indentation an edit could be of other lines of the prompt's programs, too."""
    written = _each_edit(_dedented)(reply)
    stripped = "\n".join(line.strip() for line in ["", *reply.prompt.split("\n"), ""])
    searched = ["\n".join(line.strip() for line in search.split("\n")) for search, _ in EDIT.findall(written or "")]
    alone = all(
        _places(stripped, search) == _places(reply.prompt, plain)
        for search, plain in zip(searched, _plain(reply), strict=True)
    )
    return written if alone else None


def _plain(reply: Reply) -> list[str]:
    """The SEARCH texts as they are written."""
    return [search for search, _ in EDIT.findall(reply.text)]


def _places(text: str, lines: str) -> int:
    """How often these lines stand in a text, whole."""
    return len(re.findall(f"(?=\n{re.escape(lines)}\n)", text))


def _named(search: str, replace: str) -> str:
    return f"SEARCH:\n```python\n{search}\n```\nREPLACE:\n```python\n{replace}\n```"


def _whole_for_edits(reply: Reply) -> str | None:
    changed = _child(reply) if reply.kind == "edits" else None
    return None if changed is None else f"Here is all of it:\n\n```python\n{changed}\n```"


def _child(reply: Reply) -> str | None:
    """The program that plain edits make, one after the other; None where several files are shown."""
    parent = read_prompt(reply.prompt).parent
    if parent is None or len(parent.program) != 1:
        return None
    text = next(iter(parent.program.values()))
    for search, replace in EDIT.findall(reply.text):
        assert text.count(search) >= 1
        before, _, after = text.partition(search) if text.startswith(search) else _at_lines(text, search)
        text = before + replace + (after if replace else after.removeprefix("\n"))
    return text


def _at_lines(text: str, search: str) -> tuple[str, str, str]:
    before, found, after = f"{text}\n".partition(f"\n{search}\n")
    return f"{before}\n", found, f"\n{after}".removesuffix("\n")


def _edits_for_whole(reply: Reply) -> str | None:
    if reply.kind != "program" or not reply.title.startswith(CODE_TITLE) or len(reply.blocks) != 1:
        return None
    parent = read_prompt(reply.prompt).parent
    if parent is None or len(parent.program) != 1:
        return None
    (old,) = parent.program.values()
    return None if old.strip() == reply.body.strip() else f"{reply.said}\n\n{marks(old, reply.body)}"


def _marked_lines(body: str) -> tuple[list[str], int, int] | None:
    lines = body.split("\n")
    starts = [number for number, line in enumerate(lines) if "EVOLVE-BLOCK-START" in line]
    ends = [number for number, line in enumerate(lines) if "EVOLVE-BLOCK-END" in line]
    return (lines, starts[0], ends[0]) if len(starts) == len(ends) == 1 else None


def _with_body(change: Callable[[list[str], int, int], list[str]]) -> Form:
    def written(reply: Reply) -> str | None:
        if reply.kind != "program" or len(reply.blocks) != 1:
            return None
        found = _marked_lines(reply.body)
        return None if found is None else f"{reply.said}\n\n```python\n{chr(10).join(change(*found))}\n```"

    return written


PROGRAMS: Mapping[str, Form] = {
    "edits with space at the ends of lines": _each_edit(
        lambda search, replace: marks(
            _spaced(search), replace, (f"{SEARCH_LINE} ", f"{MIDDLE_LINE} ", f"{REPLACE_LINE} ")
        )
    ),
    "edits in fences": _each_edit(lambda search, replace: f"```python\n{marks(search, replace)}\n```"),
    "edits in fences of diffs": _each_edit(lambda search, replace: f"```diff\n{marks(search, replace)}\n```"),
    "edits with fences inside": _each_edit(_named),
    "edits with other marks": _each_edit(
        lambda search, replace: marks(search, replace, ("<<<<<< SEARCH:", "======", ">>>>>> REPLACE"))
    ),
    "edits with other indentation": _all_dedented,
    "edits with blank lines at the edges": _each_edit(
        lambda search, replace: marks(f"\n{search}\n", f"\n{replace}\n" if replace else "\n")
    ),
    "a whole program for edits": _whole_for_edits,
    "edits for a whole program": _edits_for_whole,
    "forgotten marks": _with_body(
        lambda lines, start, end: [*lines[:start], *lines[start + 1 : end], *lines[end + 1 :]]
    ),
    "the block alone": _with_body(lambda lines, start, end: lines[start + 1 : end]),
    "the block with its marks": _with_body(lambda lines, start, end: lines[start : end + 1]),
    "imports above the block": _with_body(lambda lines, start, end: ["import math", "", *lines[start : end + 1]]),
    "imports in the block": _with_body(lambda lines, start, end: ["import math", "", *lines[start + 1 : end]]),
    "no fence around the program": lambda reply: (
        f"{reply.said}\n\n{reply.body}" if reply.kind == "program" and len(reply.blocks) == 1 else None
    ),
}
