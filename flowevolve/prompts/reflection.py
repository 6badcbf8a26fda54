"""The prompts of the shipped stages, and the strict parsers of their replies.

Prompts consist of sections with headings and fenced texts, which people, models and the simulated worlds can all read.
Parsers raise `UnparsableReplyError`, which callers count before they go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from flowevolve.core.model import Reason, UnparsableReplyError
from flowevolve.prompts.reading.choosing import chosen
from flowevolve.prompts.reading.fences import TEXT_LABELS, Block, blocks, fence
from flowevolve.prompts.reading.fields import lines_named
from flowevolve.prompts.reading.json_replies import answer_in
from flowevolve.prompts.reading.verdicts import read_word

EditVerdict = Literal["orthogonal", "subsumed", "conflicting"]
_VERDICTS: tuple[EditVerdict, ...] = get_args(EditVerdict)

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
    """The judge's verdict, reason and patch. Where there is one component, its block needs no label.

    Raises:
        UnparsableReplyError: if the verdict is missing or unknown, or an orthogonal verdict comes without a patch of
            known components.
    """
    verdict = read_word(reply, "verdict", _VERDICTS)
    text = answer_in(reply)
    reasons = lines_named(text, "reason")
    reason = reasons[0] if reasons else ""
    if verdict != "orthogonal":
        return RepairVerdict(verdict, reason, {})
    found = blocks(text, components)
    patch = {name: chosen(each, text, f"block of {name}").body for name, each in _by_component(found, components)}
    if not patch:
        raise UnparsableReplyError(
            "the verdict is orthogonal but no fenced block labelled with a component follows", Reason.MISSING
        )
    return RepairVerdict(verdict, reason, patch)


def _by_component(found: Sequence[Block], components: Sequence[str]) -> Iterator[tuple[str, list[Block]]]:
    """The blocks labelled with each component; those with other labels, if there is only one component."""
    for name in components:
        labelled = [block for block in found if block.label == name]
        alone = [block for block in found if len(components) == 1 and block.language in TEXT_LABELS]
        if labelled or alone:
            yield name, labelled or alone
