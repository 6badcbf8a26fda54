"""Prompts that sort a program's parts into slots by their purposes, and prompts that change programs slot by slot.

Controlled Self-Evolution (arXiv 2601.07348), §4.2: mutation changes the parts that are to be improved, crossover takes
each part from the program that has the better one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowevolve._util.json_types import JSON
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.core.templates import Prompt, Templates
from flowevolve.programs.parts import SLOTS, Slot
from flowevolve.prompts.programs import (
    ShownProgram,
    listed_programs,
    program_prompt,
    shown_files,
    shown_outcome,
    shown_task,
)
from flowevolve.prompts.reading.children import Form
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.json_replies import objects, read_object, word_of
from flowevolve.prompts.reading.parts import parts_named

DIAGNOSE_TITLE = "# Take a program apart"
PARTS_HEADING = "## Its parts"
KEEP_HEADING = "## Keep these parts"
IMPROVE_HEADING = "## Improve these parts"
TAKE_HEADING = "## Take from each"
FROM_FIRST, FROM_SECOND = "from the program", "from the other"

_KEPT = ("keep", "ok", "good")
_STATUSES = (*_KEPT, "improve", "weak")
"""The statuses that replies give slots; the prompt asks for the first and the last but one."""


def diagnose_prompt(
    templates: Templates,
    statement: str,
    program: ShownProgram,
    parts: Sequence[str],
    best: ShownProgram | None = None,
) -> Prompt:
    """Ask for the purposes of a program's parts, and which of them keep its score down. ``best`` is for comparison."""
    return templates.write(
        "diagnose",
        lambda shorten: {
            "data": templates.text("data"),
            "statement": shown_task(statement),
            "program": shown_files(program.program),
            "outcome": shown_outcome(program, shorten),
            "parts": _listed(parts),
            "others": "" if best is None else listed_programs("Program", [best], shorten),
        },
    )


def read_slots(reply: str, parts: Sequence[str]) -> tuple[Slot, ...]:
    """The slots of a reply. Parts that are not in ``parts`` are ignored, and so are slots without any other part.

    Raises:
        UnparsableReplyError: if there is no array ``slots``, a slot has an unknown name or status, or none has a part.
    """
    slots = tuple(slot for each in objects(read_object(reply).get("slots"), "slots") if (slot := _slot(each, parts)))
    if not slots:
        raise UnparsableReplyError(f"no slot has a part of the program; its parts are {', '.join(parts)}")
    return slots


def _slot(data: Mapping[str, JSON], known: Sequence[str]) -> Slot | None:
    name, status = word_of(data, "slot", SLOTS), word_of(data, "status", _STATUSES)
    parts = parts_named(data.get("parts"), known)
    why = data.get("why")
    return Slot(name, parts, status in _KEPT, why.strip() if isinstance(why, str) else "") if parts else None


def mutation_prompt(
    templates: Templates,
    statement: str,
    program: ShownProgram,
    keep: Sequence[str],
    improve: Sequence[str],
    why: Sequence[str],
    *,
    form: Form,
    advice: str = "",
    failed: Sequence[str] = (),
) -> Prompt:
    """Ask for a better program that only changes some parts. ``why`` says what is wrong with them, one line each."""
    return program_prompt(
        templates,
        statement,
        program,
        form=form,
        change="parts_mutation",
        advice=advice,
        failed=failed,
        further={"keep": _listed(keep), "improve": _listed(improve), "why": _reasons(templates, why)},
    )


def crossover_prompt(
    templates: Templates,
    statement: str,
    program: ShownProgram,
    other: ShownProgram,
    first: Sequence[str],
    second: Sequence[str],
    why: Sequence[str],
    *,
    form: Form,
    advice: str = "",
    failed: Sequence[str] = (),
) -> Prompt:
    """Ask for one program made from two, with some parts of the first and some of the other; the rest is free.

    ``why`` says what is good and what is wrong in them, one line each.
    """
    taken = [*(f"{part}: {FROM_FIRST}" for part in first), *(f"{part}: {FROM_SECOND}" for part in second)]
    return program_prompt(
        templates,
        statement,
        program,
        form=form,
        change="parts_crossover",
        others=[other],
        advice=advice,
        failed=failed,
        further={"take": _listed(taken), "why": _reasons(templates, why) if taken else ""},
    )


def _reasons(templates: Templates, why: Sequence[str]) -> str:
    return templates.text("found", why=fence("\n".join(why))) if why else ""


def _listed(names: Sequence[str]) -> str:
    return "\n".join(f"- {name}" for name in names)
