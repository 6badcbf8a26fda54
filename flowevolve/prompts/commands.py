"""The prompt for a command that edits files instead of answering, and the reading of the usage that it prints."""

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
    """The same prompt for a program, but asking for changed files instead of an answer."""
    before, _, _ = prompt.rpartition(REPLY_HEADING)
    form = templates.text("form_command", folder=PROGRAM_FOLDER)
    asked = Prompt(f"{before}{REPLY_HEADING}\n{form}\n", prompt.template)
    return with_too_like(templates, asked) if TOO_LIKE_HEADING in prompt else asked


def read_usage(output: str) -> tuple[Usage, float]:
    """The tokens and dollars that the last line with a JSON object reports; 0 for each that is not reported.

    They are read from ``input_tokens`` (or ``prompt_tokens``), ``output_tokens`` (or ``completion_tokens``) and
    ``total_cost_usd`` (or ``dollars``), in the object or in its ``usage``.
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
    """The first of these amounts that is a finite number and not negative; 0 if there is none."""
    for name in names:
        amount = amounts.get(name)
        if isinstance(amount, int | float) and 0 <= amount < float("inf"):
            return amount
    return 0
