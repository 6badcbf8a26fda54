"""Prompts that sort the parts of a program into slots by their purposes, and that change programs by slots.

Controlled Self-Evolution (arXiv 2601.07348), §4.2: mutation changes the parts that are to be improved, crossover takes
each part from the program that has the better one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowevolve._util.json_types import JSON
from flowevolve.core.model import UnparsableReplyError
from flowevolve.programs.parts import REST, SLOTS, Slot
from flowevolve.prompts.programs import (
    OTHERS_HEADING,
    OUTCOME_HEADING,
    PROGRAM_HEADING,
    REPLY_HEADING,
    ShownProgram,
    program_prompt,
    shown_files,
    shown_outcome,
    shown_programs,
    task_section,
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
"""What replies say of slots; the prompt asks for the first and the one but last."""
_PURPOSES: Mapping[str, str] = {
    "io_parsing": "takes the input in, or puts the result out",
    "core_logic": "the method itself",
    "edge_case": "sees to inputs that are special",
    "perf_patch": "is there for speed or memory alone",
    "misc": "all else",
}


def diagnose_prompt(
    statement: str, program: ShownProgram, parts: Sequence[str], best: ShownProgram | None = None
) -> str:
    """Ask for the purposes of a program's parts, and which of them keep its score down. ``best`` is for comparison."""
    sections = [
        DIAGNOSE_TITLE,
        task_section(statement),
        f"{PROGRAM_HEADING}\n{shown_files(program.program)}",
        f"{OUTCOME_HEADING}\n{shown_outcome(program)}",
        f"{PARTS_HEADING}\n{_listed(parts)}",
    ]
    if best is not None:
        sections.append(shown_programs(OTHERS_HEADING, {"Program 1": best}))
    purposes = "\n".join(f"  - {name}: {purpose}" for name, purpose in _PURPOSES.items())
    sections.append(
        f"""{REPLY_HEADING}
- Sort the parts listed above into slots by what they are for, each part into one. {REST} is what is outside of
  functions and classes. The slots are:
{purposes}
- For each slot that has parts: is it good as it is ("keep"), or does it make the program wrong, slow or large
  ("improve")? Say why in one sentence that names what the code does. At least one slot is to be improved.
- Reply with a JSON object inside one fenced block, and nothing after it, in this form:

{{"slots": [{{"slot": "core_logic", "parts": ["a name from the list"], "status": "improve", "why": "..."}}]}}"""
    )
    return "\n\n".join(sections)


def read_slots(reply: str, parts: Sequence[str]) -> tuple[Slot, ...]:
    """The slots of a reply. Names that are not in ``parts`` are ignored, and slots that have no other names.

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
    statement: str,
    program: ShownProgram,
    keep: Sequence[str],
    improve: Sequence[str],
    why: Sequence[str],
    *,
    form: Form,
    advice: str = "",
) -> str:
    """Ask for a better program that only changes some parts. ``why`` says what is wrong with them, one line each."""
    reasons = f"\nWhat was found:\n{fence(chr(10).join(why))}" if why else ""
    further = [f"{IMPROVE_HEADING}\n{_listed(improve)}{reasons}"]
    if keep:
        kept = "They are good as they are. What you change in them is undone; new functions may be added."
        further.insert(0, f"{KEEP_HEADING}\n{_listed(keep)}\n\n{kept}")
    return program_prompt(statement, program, form=form, advice=advice, further=further)


def crossover_prompt(
    statement: str,
    program: ShownProgram,
    other: ShownProgram,
    first: Sequence[str],
    second: Sequence[str],
    why: Sequence[str],
    *,
    form: Form,
    advice: str = "",
) -> str:
    """Ask for one program made of two, with some parts of the first and some of the other; the rest is free.

    ``why`` says what is good and what is wrong in them, one line each.
    """
    further = []
    if first or second:
        lines = [*(f"- {part}: {FROM_FIRST}" for part in first), *(f"- {part}: {FROM_SECOND}" for part in second)]
        kept = "Take them as they are: what you change in them is undone. What joins them is yours to write."
        reasons = f"\nWhat was found:\n{fence(chr(10).join(why))}" if why else ""
        further.append(f"{TAKE_HEADING}\n{chr(10).join(lines)}\n\n{kept}{reasons}")
    return program_prompt(statement, program, form=form, others=[other], advice=advice, further=further)


def _listed(names: Sequence[str]) -> str:
    return "\n".join(f"- {name}" for name in names)
