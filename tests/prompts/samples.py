"""One sample of what is written from each template: a prompt with all of its sections, or a part with its fields.

The snapshots beside this show them as text. After a change of a template or of a sample, write them anew with
``python -m tests.prompts.snapshots`` and read what has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from flowevolve.algorithms.code_evolve.write import FIRST_INSTRUCTIONS, INSTRUCTIONS, meta_prompt
from flowevolve.algorithms.levi.write import advice_prompt
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import Assessment
from flowevolve.core.pool import Candidate
from flowevolve.prompts.abstracts import (
    ABSTRACT,
    Trajectory,
    exemplars_prompt,
    navigate_prompt,
    summarize_prompt,
)
from flowevolve.prompts.commands import PROGRAM_FOLDER
from flowevolve.prompts.instructions import Rewriting, ShownInstruction, instruction_prompt
from flowevolve.prompts.memory import (
    Digest,
    Direction,
    Insight,
    Lesson,
    Step,
    compress_prompt,
    distill_prompt,
    queries_prompt,
    reflect_prompt,
    shown_board,
    shown_memory,
)
from flowevolve.prompts.novelty import novelty_prompt
from flowevolve.prompts.plans import implement_prompt, plan_prompt
from flowevolve.prompts.programs import Change, ShownProgram, program_prompt, seed_prompt
from flowevolve.prompts.reading.children import Form
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reflection import ReflectionExample
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.prompts.slots import crossover_prompt, diagnose_prompt, mutation_prompt
from tests.prompts.samples_instructions import INSTRUCTION_SAMPLES

STATEMENT = """\
Put 100 items into bins of capacity 1 so that few bins are used.

Write `choose(item, rooms)`, called for each item in turn with the free rooms of the open bins. It returns the number of
a bin, or -1 for a new one. The score is the bound on the number of bins over the bins used; the best known is 0.97.
A call may take 5 seconds."""
FIRST_FIT = """\
# EVOLVE-BLOCK-START
def choose(item, rooms):
    for number, room in enumerate(rooms):
        if item <= room:
            return number
    return -1
# EVOLVE-BLOCK-END
"""
BEST_FIT = """\
def choose(item, rooms):
    fitting = [(room - item, number) for number, room in enumerate(rooms) if item <= room]
    return min(fitting)[1] if fitting else -1
"""
PARENT = ShownProgram({"program.py": FIRST_FIT}, 0.91, "91 of 100 points: bins 3 and 7 stay half empty.")
OTHER = ShownProgram({"program.py": BEST_FIT}, 0.94, "94 of 100 points.")
BROKEN = ShownProgram({"program.py": BEST_FIT.replace("min", "lowest")}, None, "NameError: lowest is not defined")
OLDER = ShownProgram({"program.py": "def choose(item, rooms):\n    return -1\n"}, 0.4, "40 of 100 points.")
FAILURES = ["timeout: a call took more than 5 seconds", "bin 4 has no room for an item of 0.31"]
ADVICE = "The better ones look at how much room is left over, not at the first bin with room."
PARTS = ("choose", "<rest>")
FILES = ShownProgram({"program.py": "import rooms\n", "rooms.py": "LIMIT = 1.0\n"}, 0.91)
TRIED = ((Direction("look for the tightest bin", "success"), 2), (Direction("sort the rooms", "failed"), 1))
LESSONS = (Lesson("success", "choose() gains by tight bins."), Lesson("failed", "Sorting lost the bins' numbers."))
HELPED = Step(0.03, Insight(TRIED[0][0], "Tight bins leave large rooms for large items."))
HARMED = Step(-0.91, Insight(TRIED[1][0], "Sorted rooms no longer have the numbers that are to be returned."))
SHOWN = {
    "c1": ShownProgram({ABSTRACT: "Takes the first bin with room.\nNew: a loop over the bins"}, 0.91),
    "c2": ShownProgram({ABSTRACT: "Takes the tightest bin.\nInherited: a loop\nNew: the room left over"}, 0.94),
    "c3": ShownProgram({ABSTRACT: "Sorts the rooms first."}, None, "bin 4 has no room for an item of 0.31"),
}
TRAJECTORIES = (
    Trajectory("improvement", ("c1", "c2"), (0.03,)),
    Trajectory("mixed", ("c1", "c2", "c3"), (0.03, None)),
    Trajectory("decline", ("c2", "c3"), (None,)),
)
EXAMPLES = [ReflectionExample({"question": "What is 7 * 8?"}, "54", "Wrong: it is 56. Answers are whole numbers.", 0.0)]
INSTRUCTION = "Answer the question."


def _program(change: Change, form: Form = "whole") -> str:
    """A prompt that shows all that its template has fields for."""
    fields = SHIPPED[f"program_{change}"].fields
    return program_prompt(
        SHIPPED,
        STATEMENT,
        PARENT,
        form=form,
        change=change,
        others=[OTHER] if "others" in fields else (),
        ancestors=[OLDER] if "ancestors" in fields else (),
        failed=FAILURES if "failed" in fields else (),
        advice=ADVICE if "advice" in fields else "",
        instructions=FIRST_INSTRUCTIONS if change in ("start", "depth", "explore") else "",
    )


def _form(name: str) -> str:
    return SHIPPED.text(name, named=SHIPPED.text("form_named"))


def _instruction(rewriting: Rewriting) -> str:
    fields = SHIPPED[f"instruction_{rewriting}"].fields
    return instruction_prompt(
        SHIPPED,
        rewriting,
        "system_prompt",
        INSTRUCTION,
        EXAMPLES,
        others=[ShownInstruction("Work step by step, then answer.", 0.5)] if "others" in fields else (),
        earlier=[ShownInstruction("Guess, then check.", None)] if "earlier" in fields else (),
        advice="Say that answers are whole numbers.",
    )


def _meta() -> str:
    prompt = Candidate("p1", Artifact({INSTRUCTIONS: FIRST_INSTRUCTIONS}), (), "seed", 0)
    program = Candidate("c1", Artifact(PARENT.program), (), "seed", 0, scores={"one": 0.91})
    failed = Candidate(
        "c2",
        Artifact(BROKEN.program),
        ("c1",),
        "explore",
        0,
        attributes=Assessment(feedback=BROKEN.feedback, failure="NameError").to_json(),
    )
    return meta_prompt(SHIPPED, STATEMENT, prompt, program, failed)


SAMPLES: Mapping[str, Callable[[], str]] = {
    "advice": lambda: advice_prompt(SHIPPED, STATEMENT, [OTHER, PARENT], FAILURES),
    "along_instructions": lambda: SHIPPED.text("along_instructions"),
    "any_method": lambda: SHIPPED.text("any_method"),
    "compress_memory": lambda: compress_prompt(SHIPPED, Digest(TRIED, LESSONS), 300),
    "data": lambda: SHIPPED.text("data"),
    "diagnose": lambda: diagnose_prompt(SHIPPED, STATEMENT, PARENT, PARTS, OTHER),
    "distill": lambda: distill_prompt(SHIPPED, STATEMENT, OTHER, [HELPED], [HARMED]),
    "exemplars": lambda: exemplars_prompt(SHIPPED, STATEMENT, SHOWN["c1"], SHOWN, 2, ADVICE),
    "form_command": lambda: SHIPPED.text("form_command", folder=PROGRAM_FOLDER),
    "form_edits": lambda: _form("form_edits"),
    "form_edits_files": lambda: SHIPPED.text("form_edits_files", file="rooms.py"),
    "form_instruction": lambda: SHIPPED.text("form_instruction"),
    "form_marks": lambda: SHIPPED.text("form_marks"),
    "form_named": lambda: SHIPPED.text("form_named"),
    "form_whole": lambda: _form("form_whole"),
    "form_whole_files": lambda: _form("form_whole_files"),
    "found": lambda: SHIPPED.text("found", why="core_logic (choose), weak: it takes the first bin."),
    "implement": lambda: implement_prompt(SHIPPED, STATEMENT, PARENT.program, "Take the tightest bin.", advice=ADVICE),
    "inspiration": lambda: SHIPPED.text("inspiration"),
    "instruction_mutation": lambda: _instruction("mutation"),
    "instruction_shift": lambda: _instruction("shift"),
    "instruction_variant": lambda: _instruction("variant"),
    "learn_from_change": lambda: reflect_prompt(SHIPPED, STATEMENT, PARENT, OTHER, 0.03, shown_board(TRIED)),
    "learn_harmed": lambda: SHIPPED.text("learn_harmed"),
    "learn_helped": lambda: SHIPPED.text("learn_helped"),
    "meta": _meta,
    "navigate": lambda: navigate_prompt(SHIPPED, STATEMENT, SHOWN, TRAJECTORIES),
    "no_failures": lambda: SHIPPED.text("no_failures"),
    "novelty": lambda: novelty_prompt(SHIPPED, STATEMENT, PARENT.program, [OTHER.program, OLDER.program]),
    "plan": lambda: plan_prompt(SHIPPED, STATEMENT, PARENT.program, 3),
    "program_crossover": lambda: _program("crossover"),
    "program_depth": lambda: _program("depth", "edits"),
    "program_explore": lambda: _program("explore", "edits"),
    "program_fix": lambda: program_prompt(
        SHIPPED,
        STATEMENT,
        BROKEN,
        form="edits",
        change="fix",
        advice=ADVICE,
        further={"failure": fence("3 of 5 cases failed, case 2 so")},
    ),
    "program_generate": lambda: _program("generate", "edits"),
    "program_how": lambda: SHIPPED.text("program_how"),
    "program_improve": lambda: _program("improve", "edits"),
    "program_mutation": lambda: _program("mutation"),
    "program_parts_crossover": lambda: crossover_prompt(
        SHIPPED,
        STATEMENT,
        PARENT,
        OTHER,
        ["<rest>"],
        ["choose"],
        ["core_logic (choose), weak: it takes the first bin."],
        form="whole",
        advice=shown_memory(TRIED, LESSONS),
        failed=FAILURES,
    ),
    "program_parts_mutation": lambda: mutation_prompt(
        SHIPPED,
        STATEMENT,
        PARENT,
        ["<rest>"],
        ["choose"],
        ["core_logic (choose), weak: it takes the first bin."],
        form="whole",
        advice=shown_memory(TRIED, LESSONS),
        failed=FAILURES,
    ),
    "program_rules": lambda: SHIPPED.text("program_rules"),
    "program_seed": lambda: seed_prompt(SHIPPED, STATEMENT, [PARENT, BROKEN]),
    "program_shift": lambda: seed_prompt(SHIPPED, STATEMENT, [PARENT, OTHER], shift=True, earlier=[OLDER, BROKEN]),
    "program_start": lambda: _program("start", "edits"),
    "program_variant": lambda: _program("variant"),
    "search_memory": lambda: queries_prompt(SHIPPED, STATEMENT, PARENT, shown_memory(TRIED, LESSONS), 3),
    "summarize": lambda: summarize_prompt(SHIPPED, OTHER.program, "Takes the first bin with room."),
    "too_like": lambda: SHIPPED.text("too_like"),
    **{name: partial(write, SHIPPED) for name, write in INSTRUCTION_SAMPLES.items()},
}
"""What is written from each template, by its name."""
