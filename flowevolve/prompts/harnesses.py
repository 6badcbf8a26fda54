"""The prompt that asks for harnesses (Meta-Harness, arXiv 2603.28052)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowevolve.core.templates import Prompt, Shorten, Templates, shortener
from flowevolve.prompts.reading.fences import fence
from flowevolve.tasks.labelling import LabelledSet

HARNESS_TITLE = "# Write harnesses"
_LABELS = 20
"""The most labels of a data set that the prompt names."""
_MOST_OF_TEXT = 500
"""The most characters of a data set's example that the prompt shows."""


@dataclass(frozen=True, slots=True)
class HarnessBrief:
    """What a proposer is told: the limits that it must keep to, where to look, and a harness that works.

    If ``tries`` is 0, the prompt does not mention tries.
    """

    candidates: int
    batch: int
    rounds: int
    run_seconds: float
    calls: int
    prompt_chars: int
    tries: int
    try_rows: int
    summary: str
    frontier: str
    example: str


def harness_prompt(templates: Templates, sets: Sequence[LabelledSet], brief: HarnessBrief) -> Prompt:
    """Ask for harnesses that are more accurate, or as accurate with shorter prompts."""
    return templates.write(
        "harness",
        lambda shorten: {
            "sets": "\n".join(_set(each, shorten) for each in sets),
            "first_set": sets[0].name if brief.tries else "",
            "candidates": str(brief.candidates),
            "batch": str(brief.batch),
            "rounds": str(brief.rounds),
            "run_seconds": f"{brief.run_seconds:g}",
            "calls": str(brief.calls),
            "prompt_chars": str(brief.prompt_chars),
            "tries": str(brief.tries) if brief.tries else "",
            "try_rows": str(brief.try_rows) if brief.tries else "",
            "summary": brief.summary,
            "frontier": brief.frontier,
            "example": fence(brief.example.strip(), "python"),
        },
    )


def _set(each: LabelledSet, shorten: Shorten) -> str:
    """A data set with its labels and one of the examples that harnesses learn from."""
    named = ", ".join(each.labels[:_LABELS])
    more = f" and {len(each.labels) - _LABELS} more" if len(each.labels) > _LABELS else ""
    row = each.data.train[0]
    text = fence(shorten(shortener(_MOST_OF_TEXT)(each.text(row))))
    return (
        f"- {each.name}: {len(each.labels)} labels ({named}{more}), {len(each.data.train)} examples to learn from. "
        f"One of them has the label {each.label(row)}:\n{text}"
    )
