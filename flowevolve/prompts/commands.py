"""The prompt for a command that edits files in place of an answer, and what it prints of its use."""

from __future__ import annotations

import json
from collections.abc import Mapping

from flowevolve._util.json_types import JSON
from flowevolve.core.model import Usage
from flowevolve.core.templates import Prompt, Templates
from flowevolve.prompts.novelty import TOO_LIKE_HEADING, with_too_like
from flowevolve.prompts.programs import REPLY_HEADING

PROGRAM_FOLDER = "program"


def command_prompt(templates: Templates, prompt: Prompt) -> Prompt:
    """A prompt for a program that asks for changed files, not for an answer."""
    before, _, _ = prompt.rpartition(REPLY_HEADING)
    form = templates.text("form_command", folder=PROGRAM_FOLDER)
    asked = Prompt(f"{before}{REPLY_HEADING}\n{form}\n", prompt.template)
    return with_too_like(templates, asked) if TOO_LIKE_HEADING in prompt else asked


def read_usage(output: str) -> tuple[Usage, float]:
    """The tokens and dollars that the last line which is a JSON object says were taken; nothing, where none does.

    They are ``input_tokens`` (or ``prompt_tokens``) and ``output_tokens`` (or ``completion_tokens``), in the object or
    in its ``usage``, and ``total_cost_usd`` (or ``dollars``).
    """
    said = next((found for line in reversed(output.splitlines()) if (found := _object(line)) is not None), {})
    inner = said.get("usage")
    amounts = {**said, **(inner if isinstance(inner, dict) else {})}
    prompt, completion = (
        int(_first(amounts, *names))
        for names in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))
    )
    return Usage(prompt, completion), _first(amounts, "total_cost_usd", "dollars")


def _object(line: str) -> dict[str, JSON] | None:
    if not line.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _first(amounts: Mapping[str, JSON], *names: str) -> float:
    """The first of these amounts that is a number from 0 on."""
    for name in names:
        amount = amounts.get(name)
        if isinstance(amount, int | float) and 0 <= amount < float("inf"):
            return amount
    return 0
