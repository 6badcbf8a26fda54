"""Prompts of LEVI's own: rewriting an instruction among others, and advice."""

from __future__ import annotations

from collections.abc import Sequence

from flowevolve.programs.prompts import ADVICE_HEADING, ADVICE_TITLE, OTHERS_HEADING, ShownProgram, task_section
from flowevolve.prompts import CURRENT_HEADING, ReflectionExample, fence, reflection_prompt

INSTRUCTIONS_STATEMENT = """\
A language model works from instructions that are being evolved. Its answers are checked, and the score of an
instruction is the mean over many examples."""
OTHER_INSTRUCTIONS = "## Other instructions"
_UNLIKE = "Go about it in another way than these and the current one do: other framing, other order, other reasoning."
_ALONG = "These score well, too. Take over what is good in them."
FAILURES_HEADING = "## What went wrong"


def instruction_prompt(
    component: str,
    text: str,
    examples: Sequence[ReflectionExample],
    *,
    others: Sequence[str],
    advice: str,
    unlike: bool,
) -> str:
    """A `reflection_prompt` that shows other texts of the component, to learn from or to be unlike, and advice."""
    before, _, after = reflection_prompt(component, text, examples).partition(CURRENT_HEADING)
    sections = []
    if others or unlike:
        shown = "\n".join(fence(other) for other in others)
        sections.append(f"{OTHER_INSTRUCTIONS}\n{_UNLIKE if unlike else _ALONG}\n{shown}".rstrip())
    if advice:
        sections.append(f"{ADVICE_HEADING}\n{fence(advice)}")
    return before + "".join(f"{section}\n\n" for section in sections) + CURRENT_HEADING + after


def advice_prompt(statement: str, best: Sequence[ShownProgram], failures: Sequence[str]) -> str:
    """Ask for advice, given good candidates of different kinds, best first, and what others failed of."""
    shown = "\n\n".join(_shown(number, each) for number, each in enumerate(best, 1))
    wrong = "\n".join(f"- {line}" for line in failures) or "Nothing lately."
    return f"""{ADVICE_TITLE}

Programs or instructions are being evolved by models that see one or two of them at a time. You see more: say what these
models ought to know.

{task_section(statement)}

{OTHERS_HEADING}
{shown}

{FAILURES_HEADING}
{wrong}

## What to write
- Which ideas the better ones share, and which nobody has tried.
- Which mistakes to avoid.
- A few short points, no code, nothing else."""


def _shown(number: int, each: ShownProgram) -> str:
    texts = "\n".join(fence(text.rstrip("\n"), name) for name, text in each.program.items())
    return f"### Program {number}\nScore: {each.score}\n{texts}"
