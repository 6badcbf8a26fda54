"""The prompts of the shipped stages, and the strict parsers of their replies.

Prompts consist of sections with headings and fenced texts, which people, models and the simulated worlds can all read.
Parsers raise `UnparsableReplyError`, which callers count before they go on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve.core.model import UnparsableReplyError

EditVerdict = Literal["orthogonal", "subsumed", "conflicting"]
_VERDICTS: Mapping[str, EditVerdict] = {
    "orthogonal": "orthogonal",
    "subsumed": "subsumed",
    "conflicting": "conflicting",
}

REFLECT_TITLE = "# Improve an instruction"
JUDGE_TITLE = "# Judge an edit made from an old version"
MERGE_TITLE = "# Merge versions of an instruction"
HARNESS_TITLE = "# Write harnesses"
CURRENT_HEADING = "## Current instruction"
EXAMPLES_HEADING = "## What happened with it"
PARENT_HEADING = "## The version the edit started from"
STALE_HEADING = "## The edit"
UPDATES_HEADING = "## Accepted since then"
HEAD_HEADING = "## The current version"
ORIGIN_HEADING = "## The instruction they were made from"
VERSIONS_HEADING = "## The versions"
MERGE_EDITS_TITLE = "# Work edits into an instruction"
EDITS_HEADING = "## The edits"
BEFORE_LABEL = "Before:"
AFTER_LABEL = "After:"


@dataclass(frozen=True, slots=True)
class ReflectionExample:
    """One rollout for reflection: the inputs of a component's call, its output, and the feedback on it."""

    inputs: Mapping[str, str]
    output: str
    feedback: str


@dataclass(frozen=True, slots=True)
class RepairVerdict:
    """The judge's verdict on a stale edit. ``patch`` maps component names to new texts; empty unless orthogonal."""

    verdict: EditVerdict
    reason: str
    patch: Mapping[str, str]


def fence(text: str, label: str = "") -> str:
    """``text`` in a fenced block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0) if "`" in text else 0
    marks = "`" * max(3, longest + 1)
    return f"{marks}{label}\n{text}\n{marks}"


def reflection_prompt(component: str, text: str, examples: Sequence[ReflectionExample]) -> str:
    """Ask for a better text of one component, given rollouts with the present one (GEPA, arXiv 2507.19457, §3)."""
    shown = "\n\n".join(_example_section(number, example) for number, example in enumerate(examples, 1))
    return f"""{REFLECT_TITLE}

A language model works from the instruction named "{component}" below. Its answers were checked; the feedback says
what was right and what was wrong. Write a better instruction.

{CURRENT_HEADING}
{fence(text)}

{EXAMPLES_HEADING}
{shown}

## What to write
- Work out from the feedback what every good answer needs and state it as a rule the model can follow.
- Keep each rule of the current instruction that the feedback does not speak against.
- Rules must help on new inputs: leave out what only fits one of the examples.
- Reply with the complete new instruction inside one fenced block (three backticks) and nothing after it."""


def _example_section(number: int, example: ReflectionExample) -> str:
    inputs = "\n".join(f"{name}:\n{fence(value)}" for name, value in example.inputs.items())
    return f"""### Example {number}
{inputs}
Answer:
{fence(example.output)}
Feedback:
{fence(example.feedback)}"""


def parse_instruction(reply: str) -> str:
    """The new instruction: the text from the first fence to the last one, or to the end if it is never closed.

    Raises:
        UnparsableReplyError: if there is no fence at all or nothing inside.
    """
    opening = re.search(r"^[ \t]*(`{3,})[^\n`]*\n", reply, re.MULTILINE)
    if opening is None:
        raise UnparsableReplyError("no fenced block in the reply")
    body = reply[opening.end() :]
    closings = list(re.finditer(rf"^[ \t]*{opening[1]}[ \t]*$", body, re.MULTILINE))
    text = (body[: closings[-1].start()] if closings else body).strip()
    if not text:
        raise UnparsableReplyError("the fenced block is empty")
    return text


def judge_prompt(
    parent: Mapping[str, str],
    stale: Mapping[str, str],
    updates: Sequence[Mapping[str, str]],
    current: Mapping[str, str],
) -> str:
    """Ask whether a stale edit still adds something to the current version (FlashEvolve §3.2, *Reflective Async*).

    All arguments are texts of components by name; ``updates`` are those accepted since the edit began, oldest first.
    """
    accepted = "\n\n".join(f"### Update {number}\n{_blocks(update)}" for number, update in enumerate(updates, 1))
    return f"""{JUDGE_TITLE}

An instruction was being edited while other edits to it were accepted. Decide whether this edit still adds something
useful to the current version.

{PARENT_HEADING}
{_blocks(parent)}

{STALE_HEADING}
{_blocks(stale)}

{UPDATES_HEADING}
{accepted}

{HEAD_HEADING}
{_blocks(current)}

## What to write
Compare the edit with the version it started from: what did it add, change or remove? Then answer in this form:

Verdict: orthogonal, subsumed or conflicting
Reason: one sentence

- orthogonal: it says something useful that the current version lacks. Then write, after the reason, the current version
  with the useful part of the edit worked in: each changed component in full, in a fenced block labelled with its name
  as above. Leave out what only fits one example.
- subsumed: the current version already says it. No block.
- conflicting: it contradicts the current version. No block."""


def merge_prompt(component: str, origin: str, versions: Sequence[str]) -> str:
    """Ask for one text that combines several rewrites of one component (Combee, arXiv 2604.04247)."""
    shown = "\n\n".join(f"### Version {number}\n{fence(text)}" for number, text in enumerate(versions, 1))
    return f"""{MERGE_TITLE}

The instruction named "{component}" was rewritten several times side by side, after different examples each time. Make
one instruction of these versions.

{ORIGIN_HEADING}
{fence(origin)}

{VERSIONS_HEADING}
{shown}

## What to write
- Take over every rule that a version added or made more precise, however few versions have it.
- State each rule once. Where versions contradict each other, go with most of those that changed the original there.
- Keep a rule of the original that no version replaced, unless most dropped it. Leave out what only fits one example.
- Reply with the complete merged instruction inside one fenced block (three backticks) and nothing after it."""


def merge_edits_prompt(component: str, head: str, edits: Sequence[tuple[str, str]]) -> str:
    """Ask for one text of a component that has all that is useful in several edits.

    ``edits`` are pairs of texts, before and after an edit. The text before it may be older than ``head``, the current
    one.
    """
    shown = "\n\n".join(_edit_section(number, *edit, head) for number, edit in enumerate(edits, 1))
    return f"""{MERGE_EDITS_TITLE}

The instruction named "{component}" was edited by several people side by side. Each of them began with some version of
it, and tried the result on a few examples, where it did better. Work all of these edits into the current version.

{HEAD_HEADING}
{fence(head)}

{EDITS_HEADING}
{shown}

## What to write
- For each edit, compare the text after it with the text before it: what did it add, change or remove?
- Do the same to the current version, unless it says so already. State each rule once.
- Where edits contradict each other or the current version, keep what is more precise and helps on new inputs.
- Keep all else in the current version, in its own words. Leave out what only fits one example.
- Reply with the complete new instruction inside one fenced block (three backticks) and nothing after it."""


def _edit_section(number: int, before: str, after: str, head: str) -> str:
    start = "It began with the current version." if before == head else f"{BEFORE_LABEL}\n{fence(before)}"
    return f"### Edit {number}\n{start}\n{AFTER_LABEL}\n{fence(after)}"


def _blocks(components: Mapping[str, str]) -> str:
    return "\n".join(fence(text, name) for name, text in components.items())


def parse_verdict(reply: str, components: Sequence[str]) -> RepairVerdict:
    """The judge's verdict, reason and patch.

    Raises:
        UnparsableReplyError: if the verdict is missing or unknown, or an orthogonal verdict comes without a patch of
            known components.
    """
    found = re.search(r"^\W*verdict\W*[:=]\W*(orthogonal|subsumed|conflicting)\b", reply, re.IGNORECASE | re.MULTILINE)
    if found is None:
        raise UnparsableReplyError("no line 'Verdict: orthogonal | subsumed | conflicting' in the reply")
    verdict = _VERDICTS[found[1].lower()]
    reason_found = re.search(r"^\W*reason\W*[:=]\s*(.+)$", reply, re.IGNORECASE | re.MULTILINE)
    reason = reason_found[1].strip() if reason_found else ""
    if verdict != "orthogonal":
        return RepairVerdict(verdict, reason, {})
    patch = {name: text for name, text in labelled_blocks(reply[found.end() :]) if name in components}
    if not patch:
        raise UnparsableReplyError("the verdict is orthogonal but no fenced block labelled with a component follows")
    return RepairVerdict(verdict, reason, patch)


def labelled_blocks(text: str) -> list[tuple[str, str]]:
    """All fenced blocks as (label, text), in order. A closing fence is at least as long as its opening one."""
    return [(match["label"].strip(), match["body"]) for match in _BLOCK.finditer(text)]


_BLOCK = re.compile(
    r"^[ \t]*(?P<marks>`{3,})(?P<label>[^\n`]*)\n(?P<body>.*?)\n?^[ \t]*(?P=marks)`*[ \t]*$", re.MULTILINE | re.DOTALL
)
