"""The prompts that ask for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowevolve.core.artifact import Artifact
from flowevolve.programs.blocks import has_marks
from flowevolve.programs.edits import MIDDLE_LINE, REPLACE_LINE, SEARCH_LINE
from flowevolve.prompts.reading.children import Form, read_child
from flowevolve.prompts.reading.fences import fence

CODE_TITLE = "# Improve a program"
SEED_TITLE = "# Write a different program"
ADVICE_TITLE = "# Advise whoever writes the next programs"
META_TITLE = "# Improve the instructions for a programmer"

HOW_HEADING = "## How to go about it"
TASK_HEADING = "## The task"
PROGRAM_HEADING = "## The program"
OUTCOME_HEADING = "## What became of it"
ANCESTORS_HEADING = "## The versions before it"
OTHERS_HEADING = "## Other programs"
ADVICE_HEADING = "## Advice"
CROSS_HEADING = "## Make one of two"
FIX_HEADING = "## Mend it"
REPLY_HEADING = "## What to write"

DEFAULT_INSTRUCTIONS = """\
- Work out what keeps the score of the program down, and change that.
- One idea at a time, carried through, is worth more than many small changes.
- Take over what is good in the other programs, where some are shown.
- The program is run as it stands, with a limit on its time: no placeholders, no questions."""
"""The instructions of prompts whose instructions are not evolved."""

EDITS_WANTED = f"""\
Reply with one or more edits, each in this form and without a fence around it:

{SEARCH_LINE}
lines of the program, exactly as they are
{MIDDLE_LINE}
the lines to put in their place
{REPLACE_LINE}

Edits are made in order, each in the program as the ones before it left it."""
WHOLE_WANTED = "Reply with the complete program inside one fenced block (three backticks) and nothing after it."
NAMED_WANTED = """\
Begin the reply with two lines, which are shown to those who write later programs:

Name: a few words for what you change
Idea: one sentence on what it does and why"""
CROSS_SECTION = f"""\
{CROSS_HEADING}
Make one program of this one and the first of the other programs that has what is good in each."""
_FILES_EDITED = "Before each edit, name its file in a line of its own, such as `FILE: {name}`."
_FILES_WHOLE = """\
Reply with each file that you change, complete, inside a fenced block of its own (three backticks) that is labelled with
the file's name as above, and nothing after them."""
_DIFFERENT = """\
- Solve the task by another method than each of these programs: another structure, not other numbers.
- Keep the names and parameters of the functions that the task calls.
- Where a program failed, avoid what it failed of."""
_MARKED = "Only what is between lines with EVOLVE-BLOCK-START and EVOLVE-BLOCK-END may change; keep these lines, too."


@dataclass(frozen=True, slots=True)
class ShownProgram:
    """A program as prompts show it: its files by name, its score (None: it failed or was not run), and its feedback.

    Where other programs are shown beside a parent, so are what their writers called them and said of them.
    """

    program: Mapping[str, str]
    score: float | None
    feedback: str = ""
    name: str = ""
    """What its writer calls it, and says of it; empty where nothing was said."""
    idea: str = ""

    @property
    def said(self) -> str:
        """Lines with what its writer said of it, each with its end."""
        said = (("Name", self.name), ("Idea", self.idea))
        return "".join(f"{title}: {text}\n" for title, text in said if text)


def task_section(statement: str) -> str:
    """The statement of a task, as all prompts about programs show it."""
    return f"{TASK_HEADING}\n{fence(statement.strip())}"


def program_prompt(
    statement: str,
    parent: ShownProgram,
    *,
    form: Form,
    others: Sequence[ShownProgram] = (),
    ancestors: Sequence[ShownProgram] = (),
    advice: str = "",
    instructions: str = "",
    further: Sequence[str] = (),
) -> str:
    """Ask for a better program than ``parent``. ``ancestors`` are oldest first.

    ``instructions`` replace `DEFAULT_INSTRUCTIONS`; ``further`` are additional sections, with their headings.
    """
    sections = [
        CODE_TITLE,
        f"{HOW_HEADING}\n{fence(instructions) if instructions else DEFAULT_INSTRUCTIONS}",
        task_section(statement),
        f"{PROGRAM_HEADING}\n{shown_files(parent.program)}",
        f"{OUTCOME_HEADING}\n{shown_outcome(parent)}",
    ]
    if ancestors:
        sections.append(_listed(ANCESTORS_HEADING, "Version", ancestors))
    if others:
        sections.append(_listed(OTHERS_HEADING, "Program", others))
    sections += further
    if advice:
        sections.append(f"{ADVICE_HEADING}\n{fence(advice)}")
    sections.append(f"{REPLY_HEADING}\n{reply_instructions(parent.program, form)}")
    return "\n\n".join(sections)


def fix_section(failure: str) -> str:
    """A section that asks for nothing but that a program which failed is mended."""
    return f"{FIX_HEADING}\nThe program failed:\n{fence(failure)}\nMend that, and change nothing else."


def seed_prompt(statement: str, seeds: Sequence[ShownProgram]) -> str:
    """Ask for a whole program that solves the task in another way than ``seeds``, the first of which shows the form.

    Seeds that failed have no score, and their feedback says why.
    """
    sections = [
        SEED_TITLE,
        task_section(statement),
        _listed(OTHERS_HEADING, "Program", seeds),
        f"{REPLY_HEADING}\n{_DIFFERENT}\n\n{reply_instructions(seeds[0].program, 'whole')}",
    ]
    return "\n\n".join(sections)


def read_program(reply: str, parent: Artifact, form: Form) -> Artifact:
    """The program that a reply makes of ``parent``.

    Raises:
        UnparsableReplyError: as `read_child`.
    """
    return parent.replace(**read_child(reply, parent, form).files)


def shown_files(program: Mapping[str, str]) -> str:
    """Files as all prompts show them: fenced, by name."""
    return "\n".join(fence(text.rstrip("\n"), name) for name, text in program.items())


def shown_outcome(shown: ShownProgram) -> str:
    """A program's score and feedback, as all prompts show them."""
    score = "Score: none, it failed" if shown.score is None else f"Score: {json.dumps(shown.score)} (higher is better)"
    return f"{score}\n{fence(shown.feedback.strip())}" if shown.feedback.strip() else score


def shown_programs(heading: str, programs: Mapping[str, ShownProgram]) -> str:
    """A section that shows programs, each under its name with its score and feedback."""
    shown = [
        f"### {name}\n{each.said}{shown_outcome(each)}\n{shown_files(each.program)}" for name, each in programs.items()
    ]
    return "\n\n".join([heading, *shown])


def _listed(heading: str, word: str, programs: Sequence[ShownProgram]) -> str:
    return shown_programs(heading, {f"{word} {number}": each for number, each in enumerate(programs, 1)})


def reply_instructions(program: Mapping[str, str], form: Form) -> str:
    """The description of the reply that `read_program` can read."""
    several = len(program) > 1
    if form == "edits":
        lines = [EDITS_WANTED, *([_FILES_EDITED.format(name=next(iter(program)))] if several else [])]
    else:
        lines = [_FILES_WHOLE if several else WHOLE_WANTED]
    if any(has_marks(text) for text in program.values()):
        lines.append(_MARKED)
    lines.append(f"\n{NAMED_WANTED}")
    return "\n".join(lines)
