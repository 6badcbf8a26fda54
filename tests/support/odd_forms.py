"""Replies in odd forms: each means what the reply that it is made of means, and many show a draft beside it.

A form is a function that takes a `Reply` and gives the same in other clothes, or None where it has none for such a
reply. The forms are those that real models were seen to write; none of them rests on the words of the simulated worlds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from tests.support.odd_programs import PROGRAMS, marks
from tests.support.odd_replies import FIELD, SENTINEL, Form, Reply, draft

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
    return marks("        if x:", f"        if {SENTINEL}:") if reply.kind == "edits" else None


AMBIGUOUS: Mapping[str, Form] = {
    "two blocks": _two_of_a_kind,
    "two verdicts": _two_verdicts,
    "an edit at two places": _edits_at_two_places,
}
