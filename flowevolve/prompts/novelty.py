"""The prompt that asks whether a program is new beside others, and the reading of its reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from flowevolve.core.templates import Prompt, Templates
from flowevolve.prompts.programs import shown_files, shown_task
from flowevolve.prompts.reading.verdicts import read_word

NOVELTY_TITLE = "# Say whether a program is new"
Verdict = Literal["new", "same"]
NEW: Verdict = "new"
SAME: Verdict = "same"
TOO_LIKE_HEADING = "## Not like that"


def novelty_prompt(
    templates: Templates, statement: str, program: Mapping[str, str], others: Sequence[Mapping[str, str]]
) -> Prompt:
    """Ask whether a program does something that none of the others does."""
    return templates.write(
        "novelty",
        lambda shorten: {
            "data": templates.text("data"),
            "statement": shown_task(statement),
            "program": shown_files(program),
            "others": "\n\n".join(
                f"### Program {number}\n{shown_files(each, shorten)}" for number, each in enumerate(others, 1)
            ),
        },
    )


def read_novelty(reply: str) -> Verdict:
    """The verdict of a reply.

    Raises:
        UnparsableReplyError: if there is none, or both.
    """
    return read_word(reply, "verdict", (NEW, SAME))


def with_too_like(templates: Templates, prompt: Prompt) -> Prompt:
    """A prompt for a program that was sent before, followed by a note that its program was too similar to another."""
    if TOO_LIKE_HEADING in prompt:
        return prompt
    return Prompt(f"{prompt}\n\n{templates.text('too_like')}", prompt.template)
