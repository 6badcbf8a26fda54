"""What CodeEvolve's models are shown: programs as prompts have them, and the request for a better prompt."""

from __future__ import annotations

from flowevolve.pool import Candidate
from flowevolve.programs.prompts import (
    META_TITLE,
    OTHERS_HEADING,
    OUTCOME_HEADING,
    PROGRAM_HEADING,
    REPLY_HEADING,
    task_section,
)
from flowevolve.prompts import fence
from flowevolve.stages.coding import as_shown

INSTRUCTIONS = "instructions"
"""The component of a prompt."""
INSTRUCTIONS_HEADING = "## The instructions"
FIRST_INSTRUCTIONS = """\
- Find out what limits the score of the program, and work on that first.
- Choose a method that suits the task, and carry it through to the end: loose ends cost more than they bring.
- Look at how the other programs go about it, where some are shown, and take over what makes them good.
- Stay within the time that a program has: an answer that comes too late counts for nothing."""
"""The prompt that islands begin with, unless the user gives one."""


def meta_prompt(statement: str, prompt: Candidate, program: Candidate, failed: Candidate | None) -> str:
    """Ask for a better prompt than this one, given a program, and one written to the prompt that failed."""
    sections = [
        META_TITLE,
        "A programmer has the instructions and the task below, and a program to improve. Write better instructions.",
        f"{INSTRUCTIONS_HEADING}\n{fence(prompt.artifact[INSTRUCTIONS])}",
        task_section(statement),
        f"{PROGRAM_HEADING}\n{_files(program)}",
        f"{OUTCOME_HEADING}\n{_outcome(program)}",
    ]
    if failed is not None:
        sections.append(
            f"{OTHERS_HEADING}\nWritten to these instructions:\n\n### Program 1\n{_outcome(failed)}\n{_files(failed)}"
        )
    sections.append(
        f"""{REPLY_HEADING}
- Name ways to solve the task that the program does not take, and say what each is good for.
- Say what the outcome shows to be wrong with the program, and how to go about it.
- Warn of mistakes that were made, and keep what is good in the instructions; the task itself need not be repeated.
- Reply with the complete new instructions inside one fenced block (three backticks) and nothing after it."""
    )
    return "\n\n".join(sections)


def _files(program: Candidate) -> str:
    return "\n".join(fence(text.rstrip("\n"), name) for name, text in program.artifact.items())


def _outcome(program: Candidate) -> str:
    each = as_shown(program)
    score = "Score: none, it failed" if each.score is None else f"Score: {each.score!r} (higher is better)"
    return f"{score}\n{fence(each.feedback.strip())}" if each.feedback.strip() else score
