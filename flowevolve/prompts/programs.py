"""The prompts that ask for programs, with one template for each way to make one, and how they show programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve._util.errors import EngineError
from flowevolve.core.artifact import Artifact
from flowevolve.core.templates import Prompt, Shorten, Templates
from flowevolve.programs.blocks import has_marks
from flowevolve.prompts.reading.children import Form, read_child
from flowevolve.prompts.reading.fences import fence

CODE_TITLE = "# Improve a program"
"""The beginning of the titles of all prompts that ask for a better version of a program."""
SEED_TITLE = "# Write a different program"
SHIFT_TITLE = "# Write a program of a new kind"
ADVICE_TITLE = "# Advise whoever writes the next programs"
META_TITLE = "# Improve the instructions for a programmer"

HOW_HEADING = "## How to go about it"
TASK_HEADING = "## The task"
PROGRAM_HEADING = "## The program"
OUTCOME_HEADING = "## What became of it"
ANCESTORS_HEADING = "## The versions before it"
OTHERS_HEADING = "## Other programs"
FAILED_HEADING = "## Tries that failed"
EARLIER_HEADING = "## Shifts before this one"
ADVICE_HEADING = "## Advice"
REPLY_HEADING = "## What to write"

Change = Literal[
    "improve",
    "variant",
    "mutation",
    "crossover",
    "start",
    "depth",
    "explore",
    "generate",
    "parts_mutation",
    "parts_crossover",
    "fix",
]
"""The ways to make a program from another one. The template for each is named ``program_`` plus this."""
CHANGE_TITLES: Mapping[Change, str] = {
    "improve": CODE_TITLE,
    "variant": f"{CODE_TITLE}: a variant",
    "mutation": f"{CODE_TITLE}: one change",
    "crossover": f"{CODE_TITLE} with ideas of another",
    "start": f"{CODE_TITLE}: a new beginning",
    "depth": f"{CODE_TITLE}: further on its way",
    "explore": f"{CODE_TITLE}: another way",
    "generate": f"{CODE_TITLE} by guidance",
    "parts_mutation": f"{CODE_TITLE}: some parts of it",
    "parts_crossover": f"{CODE_TITLE} with parts of another",
    "fix": f"{CODE_TITLE}: mend it",
}


@dataclass(frozen=True, slots=True)
class ShownProgram:
    """A program as prompts show it: its files by name, its score (None: it failed or was not run), and its feedback.

    Where programs are listed, as others are beside a parent, so are the names and ideas that their writers gave.
    """

    program: Mapping[str, str]
    score: float | None
    feedback: str = ""
    name: str = ""
    """What its writer calls it and, as ``idea``, says about it; empty where nothing was said."""
    idea: str = ""

    @property
    def said(self) -> str:
        """Lines with the name and the idea that its writer gave, each with a line break at its end."""
        said = (("Name", self.name), ("Idea", self.idea))
        return "".join(f"{title}: {text}\n" for title, text in said if text)


def program_prompt(
    templates: Templates,
    statement: str,
    parent: ShownProgram,
    *,
    form: Form,
    change: Change = "improve",
    others: Sequence[ShownProgram] = (),
    ancestors: Sequence[ShownProgram] = (),
    failed: Sequence[str] = (),
    advice: str = "",
    instructions: str = "",
    further: Mapping[str, str] | None = None,
) -> Prompt:
    """Ask for a better program than ``parent``. ``ancestors`` are oldest first.

    ``failed`` says how earlier tries failed. ``instructions`` replace the shipped ones; ``further`` are more fields of
    the template.
    """
    name = f"program_{change}"

    def fields(shorten: Shorten) -> Mapping[str, str]:
        given = {
            "ancestors": listed_programs("Version", ancestors, shorten),
            "others": listed_programs("Program", others, shorten),
            "inspiration": templates.text("inspiration") if others else "",
            "failed": shown_failures(failed, shorten),
            "advice": fence(shorten(advice)) if advice else "",
            "instructions": fence(instructions) if instructions else templates.text("program_how"),
            **(further or {}),
        }
        wanted = templates[name].fields
        return {
            **common_fields(templates, statement),
            "program": shown_files(parent.program),
            "outcome": shown_outcome(parent, shorten),
            "form": reply_instructions(templates, parent.program, form),
            **{field: text for field, text in given.items() if field in wanted},
        }

    _check_shown(templates, name, {"others": others, "ancestors": ancestors, "failed": failed, "advice": advice})
    return templates.write(name, fields)


def seed_prompt(
    templates: Templates,
    statement: str,
    seeds: Sequence[ShownProgram],
    *,
    shift: bool = False,
    earlier: Sequence[ShownProgram] = (),
) -> Prompt:
    """Ask for a whole program that solves the task in another way than ``seeds``, the first of which shows the form.

    Seeds that failed have no score, and their feedback says why. With ``shift`` the prompt asks for a new kind of
    program, after much has been tried, and shows the ``earlier`` shifts.
    """

    def fields(shorten: Shorten) -> Mapping[str, str]:
        return {
            **common_fields(templates, statement),
            "others": listed_programs("Program", seeds, shorten),
            **({"earlier": listed_programs("Earlier program", earlier, shorten)} if shift else {}),
            "form": reply_instructions(templates, seeds[0].program, "whole"),
        }

    return templates.write("program_shift" if shift else "program_seed", fields)


def read_program(reply: str, parent: Artifact, form: Form) -> Artifact:
    """The program that a reply makes from ``parent``.

    Raises:
        UnparsableReplyError: as `read_child`.
    """
    return parent.replace(**read_child(reply, parent, form).files)


def common_fields(templates: Templates, statement: str) -> Mapping[str, str]:
    """The fields that all prompts for programs have in common: the task, the rules, and what is data."""
    return {
        "data": templates.text("data"),
        "statement": shown_task(statement),
        "rules": templates.text("program_rules"),
    }


def shown_task(statement: str) -> str:
    """The statement of a task."""
    return fence(statement.strip())


def shown_files(program: Mapping[str, str], shorten: Shorten = str) -> str:
    """Files as all prompts show them: fenced, by name."""
    return "\n".join(fence(shorten(text.rstrip("\n")), name) for name, text in program.items())


def shown_outcome(shown: ShownProgram, shorten: Shorten) -> str:
    """A program's score and feedback, as all prompts show them."""
    score = shown_score(shown.score)
    feedback = shown.feedback.strip()
    return f"{score}\n{fence(shorten(feedback))}" if feedback else score


def shown_score(score: float | None) -> str:
    """A score as all prompts show it; None: it failed."""
    return "Score: none, it failed" if score is None else f"Score: {json.dumps(score)} (higher is better)"


def shown_programs(programs: Mapping[str, ShownProgram], shorten: Shorten) -> str:
    """Programs, each under its name with its score and feedback; empty where there are none."""
    return "\n\n".join(
        f"### {name}\n{each.said}{shown_outcome(each, shorten)}\n{shown_files(each.program, shorten)}"
        for name, each in programs.items()
    )


def listed_programs(word: str, programs: Sequence[ShownProgram], shorten: Shorten) -> str:
    """Programs as `shown_programs` shows them, named by the word and a number."""
    return shown_programs({f"{word} {number}": each for number, each in enumerate(programs, 1)}, shorten)


def shown_failures(failed: Sequence[str], shorten: Shorten) -> str:
    """How tries failed, each of these once; empty where there are none."""
    texts = dict.fromkeys(each.strip() for each in failed)
    return "\n".join(fence(shorten(text)) for text in texts if text)


def reply_instructions(templates: Templates, program: Mapping[str, str], form: Form) -> str:
    """The description of the reply that `read_program` can read."""
    several, named = len(program) > 1, templates.text("form_named")
    if form == "edits":
        parts = [templates.text("form_edits", named=named)]
        parts += [templates.text("form_edits_files", file=next(iter(program)))] if several else []
    else:
        parts = [templates.text("form_whole_files" if several else "form_whole", named=named)]
    if any(has_marks(text) for text in program.values()):
        parts.append(templates.text("form_marks"))
    return "\n\n".join(parts)


def _check_shown(templates: Templates, name: str, shown: Mapping[str, object]) -> None:
    """Raises: EngineError if something is to be shown that the template has no field for."""
    unshown = [field for field, value in shown.items() if value and field not in templates[name].fields]
    if unshown:
        raise EngineError(f"template {name!r} has no field for {', '.join(unshown)}")
