"""The prompts of the shipped stages, and the strict parsers of their replies.

Prompts consist of sections with headings and fenced texts, which people, models and the simulated worlds can all read.
Parsers raise `UnparsableReplyError`, which callers count before they go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from flowevolve.core.artifact import Artifact
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.core.task import Rollout
from flowevolve.core.templates import Prompt, Shorten, Templates, shortener
from flowevolve.prompts.reading.choosing import chosen
from flowevolve.prompts.reading.fences import TEXT_LABELS, Block, blocks, fence
from flowevolve.prompts.reading.fields import lines_named
from flowevolve.prompts.reading.instructions import not_too_long
from flowevolve.prompts.reading.json_replies import answer_in
from flowevolve.prompts.reading.placeholders import no_placeholder
from flowevolve.prompts.reading.verdicts import read_word

EditVerdict = Literal["orthogonal", "subsumed", "conflicting"]
_VERDICTS: tuple[EditVerdict, ...] = get_args(EditVerdict)

REFLECT_TITLE = "# Improve an instruction"
JUDGE_TITLE = "# Judge an edit made from an old version"
MERGE_TITLE = "# Merge versions of an instruction"
CURRENT_HEADING = "## Current instruction"
EXAMPLES_HEADING = "## What happened with it"
PARENT_HEADING = "## The version the edit started from"
STALE_HEADING = "## The edit"
UPDATES_HEADING = "## Accepted since then"
HEAD_HEADING = "## The current version"
OTHERS_HEADING = "## Other instructions of the same system"
WRITE_HEADING = "## What to write"
ORIGIN_HEADING = "## The instruction they were made from"
VERSIONS_HEADING = "## The versions"
MERGE_EDITS_TITLE = "# Work edits into an instruction"
EDITS_HEADING = "## The edits"
BEFORE_LABEL = "Before:"
AFTER_LABEL = "After:"


_MOST_OF_OTHERS = 1_500
"""The most characters that are shown of each component that is not to be rewritten."""


@dataclass(frozen=True, slots=True)
class ReflectionExample:
    """One rollout for reflection: the inputs of a component's call, its output, and the feedback on it."""

    inputs: Mapping[str, str]
    output: str
    feedback: str
    score: float | None = None
    """The score of the whole rollout; higher is better."""
    final: str = ""
    """The answer that was scored, if that is not the output of this call."""


def reflection_examples(component: str, rollouts: Sequence[Rollout]) -> list[ReflectionExample]:
    """The calls of some rollouts that used this component."""
    return [
        ReflectionExample(
            call.inputs,
            call.output,
            rollout.score.feedback,
            rollout.score.value,
            "" if rollout.output.strip() == call.output.strip() else rollout.output,
        )
        for rollout in rollouts
        for call in rollout.calls
        if call.component == component
    ]


@dataclass(frozen=True, slots=True)
class RepairVerdict:
    """The judge's verdict on a stale edit. ``patch`` maps component names to new texts; empty unless orthogonal."""

    verdict: EditVerdict
    reason: str
    patch: Mapping[str, str]


WriteReflection = Callable[[Templates, str, Artifact, Sequence[ReflectionExample]], Prompt]
"""Writes a prompt that asks for a better text of the component of this name, given rollouts with the artifact."""


def reflection_prompt(
    templates: Templates,
    component: str,
    text: str,
    examples: Sequence[ReflectionExample],
    others: Mapping[str, str] | None = None,
) -> Prompt:
    """Ask for a better text of one component, given rollouts with the present one (GEPA, arXiv 2507.19457, §3).

    ``others`` are the texts of the other components by name; of long ones the beginning and the end are shown.
    """
    cut = shortener(_MOST_OF_OTHERS)
    context = {name: cut(other) for name, other in (others or {}).items()}
    return templates.write(
        "reflect",
        lambda shorten: {
            "component": component,
            "text": fence(text),
            "others": _blocks(context, shorten),
            "examples": shown_examples(examples, shorten),
        },
    )


def reflect_on(
    templates: Templates, component: str, artifact: Artifact, examples: Sequence[ReflectionExample]
) -> Prompt:
    """The `reflection_prompt` for a component of an artifact."""
    others = {name: text for name, text in artifact.items() if name != component}
    return reflection_prompt(templates, component, artifact[component], examples, others)


def shown_examples(examples: Sequence[ReflectionExample], shorten: Shorten) -> str:
    """Rollouts as prompts show them."""
    return "\n\n".join(_example(number, each, shorten) for number, each in enumerate(examples, 1))


def _example(number: int, example: ReflectionExample, shorten: Shorten) -> str:
    shown = [f"{name}:\n{fence(shorten(value))}" for name, value in example.inputs.items()]
    shown.append(f"Answer:\n{fence(shorten(example.output))}")
    if example.final:
        shown.append(f"Final answer, which was scored:\n{fence(shorten(example.final))}")
    if example.score is not None:
        shown.append(f"Score: {example.score:.4g}")
    shown.append(f"Feedback:\n{fence(shorten(example.feedback))}")
    return "\n".join([f"### Example {number}", *shown])


def judge_prompt(
    templates: Templates,
    parent: Mapping[str, str],
    stale: Mapping[str, str],
    updates: Sequence[Mapping[str, str]],
    current: Mapping[str, str],
) -> Prompt:
    """Ask whether a stale edit still adds something to the current version (FlashEvolve §3.2, *Reflective Async*).

    The mappings are texts of components by name; ``updates`` are those accepted since the edit began, oldest first.
    """

    def fields(shorten: Shorten) -> Mapping[str, str]:
        accepted = [f"### Update {number}\n{_blocks(each, shorten)}" for number, each in enumerate(updates, 1)]
        return {
            "component": next(iter(stale), "instruction"),
            "parent": _blocks(parent, shorten),
            "edit": _blocks(stale),
            "updates": "\n\n".join(accepted) or "None of them is left.",
            "current": _blocks(current),
        }

    return templates.write("judge", fields)


def merge_prompt(templates: Templates, component: str, origin: str, versions: Sequence[str]) -> Prompt:
    """Ask for one text that combines several rewrites of one component (Combee, arXiv 2604.04247)."""
    return templates.write(
        "merge",
        lambda shorten: {
            "component": component,
            "origin": fence(origin),
            "versions": "\n\n".join(
                f"### Version {number}\n{fence(shorten(text))}" for number, text in enumerate(versions, 1)
            ),
        },
    )


def merge_edits_prompt(templates: Templates, component: str, head: str, edits: Sequence[tuple[str, str]]) -> Prompt:
    """Ask for one text of a component that combines all that is useful in several edits.

    ``edits`` are pairs of texts, before and after an edit. The text before may be older than ``head``, the current one.
    """
    return templates.write(
        "merge_edits",
        lambda shorten: {
            "component": component,
            "current": fence(head),
            "edits": "\n\n".join(_edit(number, each, head, shorten) for number, each in enumerate(edits, 1)),
        },
    )


def _edit(number: int, edit: tuple[str, str], head: str, shorten: Shorten) -> str:
    before, after = edit
    start = "It began with the current version." if before == head else f"{BEFORE_LABEL}\n{fence(shorten(before))}"
    return f"### Edit {number}\n{start}\n{AFTER_LABEL}\n{fence(shorten(after))}"


def _blocks(components: Mapping[str, str], shorten: Shorten = str) -> str:
    return "\n".join(fence(shorten(text), name) for name, text in components.items())


def parse_verdict(reply: str, components: Sequence[str], longest: int | None = None) -> RepairVerdict:
    """The judge's verdict, reason and patch. If there is only one component, its block needs no label.

    Raises:
        UnparsableReplyError: if the verdict is missing or unknown, an orthogonal verdict comes without a patch of
            known components, or the text of one is a placeholder or has more than ``longest`` characters.
    """
    verdict = read_word(reply, "verdict", _VERDICTS)
    text = answer_in(reply)
    reasons = lines_named(text, "reason")
    reason = reasons[0] if reasons else ""
    if verdict != "orthogonal":
        return RepairVerdict(verdict, reason, {})
    found = blocks(text, components)
    patch = {
        name: no_placeholder(not_too_long(chosen(each, text, f"block of {name}").body, longest), f"the block of {name}")
        for name, each in _by_component(found, components)
    }
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
