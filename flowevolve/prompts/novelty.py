"""The prompt that asks whether a program is new beside others, and the reading of its reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from flowevolve.prompts.programs import OTHERS_HEADING, PROGRAM_HEADING, REPLY_HEADING, shown_files, task_section
from flowevolve.prompts.reading.verdicts import read_word

NOVELTY_TITLE = "# Say whether a program is new"
Verdict = Literal["new", "same"]
NEW: Verdict = "new"
SAME: Verdict = "same"
TOO_LIKE_HEADING = "## Not like that"
_TOO_LIKE = """\
A program that was written to this prompt was turned down before it was run, as it is too much like one that there is.
Go about it in another way."""


def novelty_prompt(statement: str, program: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> str:
    """Ask whether a program does something that none of the others does."""
    shown = "\n\n".join(f"### Program {number}\n{shown_files(each)}" for number, each in enumerate(others, 1))
    return f"""{NOVELTY_TITLE}

{task_section(statement)}

{PROGRAM_HEADING}
{shown_files(program)}

{OTHERS_HEADING}
{shown}

{REPLY_HEADING}
- It is new if it may score otherwise than each of the other programs: another method, another structure, or other
  numbers that matter.
- It is the same as one of them if only names, comments, layout or the order of independent parts differ.
- Reply with a line "Verdict: {NEW}" or "Verdict: {SAME}", and nothing else."""


def read_novelty(reply: str) -> Verdict:
    """The verdict of a reply.

    Raises:
        UnparsableReplyError: if there is none, or both.
    """
    return read_word(reply, "verdict", (NEW, SAME))


def with_too_like(prompt: str) -> str:
    """A prompt for a program that was asked before, and what came of it."""
    return prompt if TOO_LIKE_HEADING in prompt else f"{prompt}\n\n{TOO_LIKE_HEADING}\n{_TOO_LIKE}"
