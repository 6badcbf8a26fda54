"""The prompts by which LEVI has instructions written: variants, changes, and new kinds of them.

They show rollouts with the instruction as `flowevolve.prompts.reflection` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve.core.templates import Prompt, Shorten, Templates
from flowevolve.prompts.programs import shown_score
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reflection import REFLECT_TITLE, ReflectionExample, shown_examples

Rewriting = Literal["variant", "mutation", "shift"]
"""The ways to make an instruction from another one. The template for each is named ``instruction_`` plus this."""
REWRITING_TITLES: Mapping[Rewriting, str] = {
    "variant": f"{REFLECT_TITLE}: a variant",
    "mutation": f"{REFLECT_TITLE}: one change",
    "shift": f"{REFLECT_TITLE}: a new kind",
}


@dataclass(frozen=True, slots=True)
class ShownInstruction:
    """An instruction as prompts show it, with its score; None if it failed."""

    text: str
    score: float | None


def instruction_prompt(
    templates: Templates,
    rewriting: Rewriting,
    component: str,
    text: str,
    examples: Sequence[ReflectionExample],
    *,
    others: Sequence[ShownInstruction],
    earlier: Sequence[ShownInstruction],
    advice: str,
) -> Prompt:
    """Ask for a better text of one component, given rollouts with the present one.

    A mutation should take over what is good in ``others``; a shift should differ from them and from ``earlier`` shifts.
    """
    name = f"instruction_{rewriting}"

    def fields(shorten: Shorten) -> Mapping[str, str]:
        given = {
            "along": templates.text("along_instructions") if others else "",
            "others": _shown(others, shorten),
            "earlier": _shown(earlier, shorten),
        }
        return {
            "data": templates.text("data"),
            "component": component,
            "text": fence(text),
            "examples": shown_examples(examples, shorten),
            "advice": fence(shorten(advice)) if advice else "",
            "form": templates.text("form_instruction"),
            **{field: value for field, value in given.items() if field in templates[name].fields},
        }

    return templates.write(name, fields)


def _shown(instructions: Sequence[ShownInstruction], shorten: Shorten) -> str:
    return "\n".join(f"{shown_score(each.score)}\n{fence(shorten(each.text))}" for each in instructions)
