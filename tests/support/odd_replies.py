"""Replies in their plain form, with the prompts that they answer, and drafts of such replies."""

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
from flowevolve.prompts.programs import ADVICE_TITLE, META_TITLE
from flowevolve.prompts.reading.fences import labelled_blocks
from flowevolve.prompts.reflection import (
    JUDGE_TITLE,
    MERGE_EDITS_TITLE,
    MERGE_TITLE as MERGE_VERSIONS_TITLE,
    REFLECT_TITLE,
)

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
EDIT = re.compile(rf"{SEARCH_LINE}\n(.*?)\n?{MIDDLE_LINE}\n(.*?)\n?{REPLACE_LINE}", re.DOTALL)


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
            return "\n\n".join(_marked_edit(search) for search, _ in EDIT.findall(reply.text))
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
