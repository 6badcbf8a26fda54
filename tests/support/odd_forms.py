"""Replies in odd forms: each means what the reply that it is made of means, and many show a draft beside it.

A form is a function that takes a `Reply` and gives the same in other clothes, or None where it has none for such a
reply. The forms are those that real models were seen to write; none of them rests on the words of the simulated worlds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from flowevolve._util.json_types import JSON
from flowevolve.programs.edits import MIDDLE_LINE, REPLACE_LINE, SEARCH_LINE
from flowevolve.prompts.harnesses import HARNESS_TITLE
from flowevolve.prompts.instructions import REWRITING_TITLES
from flowevolve.prompts.playbook import COMPARE_TITLE, CURATE_TITLE, GATHER_TITLE, LESSON_TITLE, MERGE_TITLE
from flowevolve.prompts.programs import ADVICE_TITLE, CODE_TITLE, META_TITLE
from flowevolve.prompts.reading.fences import labelled_blocks
from flowevolve.prompts.reflection import (
    JUDGE_TITLE,
    MERGE_EDITS_TITLE,
    MERGE_TITLE as MERGE_VERSIONS_TITLE,
    REFLECT_TITLE,
)
from flowevolve.sim.worlds.code.prompt import read_prompt

SENTINEL = "DRAFT_SENTINEL_42"
FIELD = "\x1e"
"""Parts the thinking that a server sends in a field of its own from the text of its reply."""
Kind = Literal["words", "text", "verdict", "lines", "json", "program", "edits", "tools", "harnesses"]
"""What a reply is: an answer or advice, of which all counts; or one of the forms that are read."""
_TITLES: Mapping[str, Kind] = {
    **dict.fromkeys((REFLECT_TITLE, MERGE_VERSIONS_TITLE, MERGE_EDITS_TITLE, MERGE_TITLE, META_TITLE), "text"),
    **dict.fromkeys((LESSON_TITLE, GATHER_TITLE, COMPARE_TITLE), "lines"),
    **dict.fromkeys(REWRITING_TITLES.values(), "text"),
    JUDGE_TITLE: "verdict",
    CURATE_TITLE: "json",
    ADVICE_TITLE: "words",
}
_EDIT = re.compile(rf"{SEARCH_LINE}\n(.*?)\n?{MIDDLE_LINE}\n(.*?)\n?{REPLACE_LINE}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply in its plain form, with the prompt that it answers."""

    text: str
    prompt: str

    @property
    def title(self) -> str:
        return self.prompt.partition("\n")[0]

    @property
    def kind(self) -> Kind:
        """By the prompt's title, and what the reply has."""
        if self.title in _TITLES:
            return _TITLES[self.title]
        if self.title.startswith(HARNESS_TITLE) or '{"tool"' in self.text:
            return "harnesses" if "```python" in self.text else "tools"
        if SEARCH_LINE in self.text:
            return "edits"
        if not self.prompt.startswith("# ") or "```" not in self.text:
            return "words"
        return "json" if self.blocks[0][0] == "json" else "program"

    @property
    def said(self) -> str:
        """What stands in front of the first block."""
        return self.text.partition("```")[0].strip()

    @property
    def blocks(self) -> list[tuple[str, str]]:
        """Label and body of each block."""
        return labelled_blocks(self.text)

    @property
    def body(self) -> str:
        """That of the last block."""
        return self.blocks[-1][1]

    def refenced(self, write: Callable[[str, str], str]) -> str:
        """The same with its blocks written otherwise."""
        return "\n\n".join(part for part in (self.said, *(write(*each) for each in self.blocks)) if part)


Form = Callable[[Reply], str | None]


def draft(reply: Reply) -> str:
    """What a reply like this one could have been, and is not to become; the `SENTINEL` is in all that could be taken."""
    match reply.kind:
        case "text":
            return f"```\nAnswer each question with {SENTINEL}.\n```"
        case "verdict":
            return f"Verdict: orthogonal\nReason: {SENTINEL}\n\n```\nAlways say {SENTINEL}.\n```"
        case "lines":
            return re.sub(r"(:) (.*)$", rf"\1 {SENTINEL} \2", reply.text, flags=re.MULTILINE)
        case "json":
            return f"```json\n{json.dumps(_marked(json.loads(reply.body)))}\n```"
        case "program" | "harnesses":
            return "\n\n".join(f"```{label}\n{_marked_program(body)}\n```" for label, body in reply.blocks)
        case "edits":
            return "\n\n".join(_marked_edit(search) for search, _ in _EDIT.findall(reply.text))
        case "tools":
            return json.dumps({"tool": "read", "path": SENTINEL})
        case _:
            return f"{SENTINEL} {reply.text}"


def _marked(value: JSON) -> JSON:
    """JSON of the same form with the `SENTINEL` in its texts, and in one at least."""
    if isinstance(value, dict):
        return {name: _marked(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_marked(each) for each in value] or [{"op": "ADD", "section": "strategies", "text": SENTINEL}]
    return f"{SENTINEL} {value}" if isinstance(value, str) and " " in value else value


def _marked_program(body: str) -> str:
    """The program with one more line, between the marks where it has some."""
    lines = body.split("\n")
    last = next((number for number, line in enumerate(lines) if "EVOLVE-BLOCK-END" in line), len(lines))
    return "\n".join([*lines[:last], f'DRAFT = "{SENTINEL}"', *lines[last:]])


def _marked_edit(search: str) -> str:
    return f"{SEARCH_LINE}\n{search}\n{MIDDLE_LINE}\n{search}  # {SENTINEL}\n{REPLACE_LINE}"


# Thinking, which stands in front of any reply


def _thought(before: str, after: str) -> Form:
    return lambda reply: f"{before}Maybe so:\n{draft(reply)}\nNo, better otherwise.\n{after}{reply.text}"


def _thought_between(reply: Reply) -> str | None:
    if reply.kind in ("words", "tools", "lines", "verdict", "edits"):
        return None
    rest = reply.text.removeprefix(reply.said).strip()
    return f"{reply.said}\n\n<think>\nMaybe:\n{draft(reply)}\n</think>\n\n{rest}" if reply.said else None


def _broken_fence(reply: Reply) -> str:
    return f"<think>\n```python\n{draft(reply)}\n```python\n{SENTINEL}\n</think>\n\n{reply.text}"


THINKING: Mapping[str, Form] = {
    "thinking": _thought("<think>\n", "</think>\n\n"),
    "thinking without its opening tag": _thought("", "</think>\n\n"),
    "thinking in a field of its own": _thought(FIELD, FIELD),
    "thinking in channels": lambda reply: (
        f"<|channel|>analysis<|message|>Maybe:\n{draft(reply)}<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{reply.text}"
    ),
    "thinking with a fence that never ends": _broken_fence,
    "thinking behind a sentence": _thought_between,
}

# Fences

_FENCED = ("text", "verdict", "json", "program", "harnesses")
_LABELS: Mapping[str, str] = {"": "markdown", "python": "py", "json": "jsonc", "instruction": "text"}


def _fenced(write: Callable[[str, str], str]) -> Form:
    return lambda reply: reply.refenced(write) if reply.kind in _FENCED and reply.blocks else None


def _indented(label: str, body: str) -> str:
    lines = [f"```{label}", *body.split("\n"), "```"]
    return "1. So:\n\n" + "\n".join(f"   {line}" if line else line for line in lines)


def _unclosed(reply: Reply) -> str | None:
    text = reply.text.rstrip()
    return text.removesuffix("```").rstrip("\n") if reply.kind in _FENCED and text.endswith("\n```") else None


def _inside_another(reply: Reply) -> str | None:
    return f"````markdown\n{reply.text}\n````" if reply.kind in ("json", "program", "harnesses") else None


FENCES: Mapping[str, Form] = {
    "tildes": _fenced(lambda label, body: f"~~~{label}\n{body}\n~~~"),
    "another label": _fenced(lambda label, body: f"```{_LABELS.get(label, label)}\n{body}\n```"),
    "no label": lambda reply: (
        None if reply.kind == "harnesses" else _fenced(lambda label, body: f"```\n{body}\n```")(reply)
    ),  # a harness that does not parse is known by its label alone
    "a longer fence": _fenced(lambda label, body: f"`````{label}\n{body}\n`````"),
    "a fence in a list": _fenced(_indented),
    "a last fence that is never closed": _unclosed,
    "a fence around fences": _inside_another,
    "other ends of lines": lambda reply: reply.text.replace("\n", "\r\n") if reply.kind != "words" else None,
}

# Prose, and drafts that are said to be drafts


def _amid_prose(reply: Reply) -> str | None:
    if reply.kind == "words":
        return None
    after = "I hope this helps. Let me know if you would like `something` else!"
    return f"Sure, I looked at all of it (see `above`).\n\n{reply.text}\n\n{after}"


def _old_and_new(old: str, new: str) -> Form:
    def written(reply: Reply) -> str | None:
        if reply.kind in ("text", "json") or (reply.kind == "program" and len(reply.blocks) == 1):
            return f"{old}\n\n{draft(reply)}\n\n{new}\n\n{_rest(reply)}"
        if reply.kind == "harnesses":
            return f"{old}\n\n{draft(reply)}\n\n" + reply.refenced(
                lambda label, body: f"{new}\n```{label}\n{body}\n```"
            )
        return f"{old}\n\n{draft(reply)}\n\n{new}\n\n{reply.text}" if reply.kind == "edits" else None

    return written


def _rest(reply: Reply) -> str:
    return reply.text.removeprefix(reply.said).strip()


PROSE: Mapping[str, Form] = {
    "amid prose": _amid_prose,
    "a draft and the final one": _old_and_new("### Draft", "### Final version"),
    "the old one and the new one": lambda reply: (
        None if reply.kind == "edits" else _old_and_new("The old one was:", "The new one is:")(reply)
    ),
    "a first attempt": _old_and_new("My first attempt:", "**The corrected version:**"),
}

# Values


def _json_in(write: Callable[[str], str]) -> Form:
    return lambda reply: f"{reply.said}\n\n{write(reply.body)}".strip() if reply.kind == "json" else None


def _with_commas(body: str) -> str:
    text = json.dumps(json.loads(body), indent=2)
    return "```json\n" + re.sub(r"([\]}\"\w])\n(\s*[\]}])", r"\1,\n\2", text) + "\n```"


def _with_remarks(body: str) -> str:
    first, *lines = json.dumps(json.loads(body), indent=2).split("\n")
    return "\n".join(["```json", f"{first}  // {SENTINEL}", *lines, "```"])


def _bold_names(reply: Reply) -> str | None:
    if reply.kind not in ("lines", "verdict"):
        return None
    return re.sub(r"^(\w[\w-]*):", r"**\1:**", reply.text, flags=re.MULTILINE)


def _listed(mark: str) -> Form:
    def written(reply: Reply) -> str | None:
        if reply.kind != "lines":
            return None
        return "\n".join(f"{mark} {line}" for line in reply.text.split("\n"))

    return written


def _under_a_heading(reply: Reply) -> str | None:
    """Lessons as a list below one name."""
    lessons = re.findall(r"^Lesson: (.*)$", reply.text, re.MULTILINE)
    if reply.kind != "lines" or not lessons:
        return None
    others = [line for line in reply.text.split("\n") if not line.startswith("Lesson: ")]
    return "\n".join(["**Lessons:**", *(f"• {lesson}" for lesson in lessons), "", *others])


def _verdict_with(line: str) -> Form:
    def written(reply: Reply) -> str | None:
        return re.sub(r"^Verdict: (\w+)$", line, reply.text, flags=re.MULTILINE) if reply.kind == "verdict" else None

    return written


VALUES: Mapping[str, Form] = {
    "JSON with commas too many": _json_in(_with_commas),
    "JSON with remarks": _json_in(_with_remarks),
    "JSON without a fence": _json_in(lambda body: f"So it is {body}\n\nThat is all."),
    "JSON in one line, in quotes of its fence": _json_in(lambda body: "```" + json.dumps(json.loads(body)) + "```"),
    "names in bold": _bold_names,
    "a list with stars": _listed("*"),
    "a list with bullets": _listed("•"),
    "a list below a name": _under_a_heading,
    "a verdict in bold": _verdict_with(r"**Verdict: \1**"),
    "a verdict in a heading": _verdict_with(r"## Verdict: **\1**"),
    "a verdict with its reason": _verdict_with(r"- Verdict: *\1* - as said below"),
}

# Programs


def _each_edit(write: Callable[[str, str], str]) -> Form:
    def written(reply: Reply) -> str | None:
        if reply.kind != "edits":
            return None
        return _EDIT.sub(lambda edit: write(edit[1], edit[2]), reply.text)

    return written


def _spaced(text: str) -> str:
    return "\n".join(f"{line}  " for line in text.split("\n"))


def _marks(search: str, replace: str, marks: tuple[str, str, str] = (SEARCH_LINE, MIDDLE_LINE, REPLACE_LINE)) -> str:
    lines = [marks[0], search, marks[1], *([replace] if replace else []), marks[2]]
    return "\n".join(lines)


def _dedented(search: str, replace: str) -> str:
    lines = [line for line in [*search.split("\n"), *replace.split("\n")] if line.strip()]
    by = min(len(line) - len(line.lstrip(" ")) for line in lines)
    cut = ["\n".join(line[by:] for line in text.split("\n")) for text in (search, replace)]
    return _marks(cut[0], cut[1])


def _all_dedented(reply: Reply) -> str | None:
    """None where without its indentation an edit could be of other lines of the prompt's programs, too."""
    written = _each_edit(_dedented)(reply)
    stripped = "\n".join(line.strip() for line in ["", *reply.prompt.split("\n"), ""])
    searched = ["\n".join(line.strip() for line in search.split("\n")) for search, _ in _EDIT.findall(written or "")]
    alone = all(
        _places(stripped, search) == _places(reply.prompt, plain)
        for search, plain in zip(searched, _plain(reply), strict=True)
    )
    return written if alone else None


def _plain(reply: Reply) -> list[str]:
    """The SEARCH texts as they are written."""
    return [search for search, _ in _EDIT.findall(reply.text)]


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
    for search, replace in _EDIT.findall(reply.text):
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
    return None if old.strip() == reply.body.strip() else f"{reply.said}\n\n{_marks(old, reply.body)}"


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
        lambda search, replace: _marks(
            _spaced(search), replace, (f"{SEARCH_LINE} ", f"{MIDDLE_LINE} ", f"{REPLACE_LINE} ")
        )
    ),
    "edits in fences": _each_edit(lambda search, replace: f"```python\n{_marks(search, replace)}\n```"),
    "edits in fences of diffs": _each_edit(lambda search, replace: f"```diff\n{_marks(search, replace)}\n```"),
    "edits with fences inside": _each_edit(_named),
    "edits with other marks": _each_edit(
        lambda search, replace: _marks(search, replace, ("<<<<<< SEARCH:", "======", ">>>>>> REPLACE"))
    ),
    "edits with other indentation": _all_dedented,
    "edits with blank lines at the edges": _each_edit(
        lambda search, replace: _marks(f"\n{search}\n", f"\n{replace}\n" if replace else "\n")
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

FORMS: Mapping[str, Form] = {**THINKING, **FENCES, **PROSE, **VALUES, **PROGRAMS}

# Forms that can be read in two ways


def _two_of_a_kind(reply: Reply) -> str | None:
    """Two blocks of which nothing says which one is meant."""
    if reply.kind in ("text", "json") or (reply.kind == "program" and len(reply.blocks) == 1):
        return f"{draft(reply)}\n\nOr:\n\n{_rest(reply)}"
    return None


def _two_verdicts(reply: Reply) -> str | None:
    if reply.kind != "verdict":
        return None
    return f"Verdict: orthogonal\nVerdict: subsumed\nReason: {SENTINEL}\n\n```\n{SENTINEL}\n```"


def _edits_at_two_places(reply: Reply) -> str | None:
    """A line that stands in the program more than once."""
    return _marks("        if x:", f"        if {SENTINEL}:") if reply.kind == "edits" else None


AMBIGUOUS: Mapping[str, Form] = {
    "two blocks": _two_of_a_kind,
    "two verdicts": _two_verdicts,
    "an edit at two places": _edits_at_two_places,
}
