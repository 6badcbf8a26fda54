"""CodeEvolve's stages between selection and update: a better prompt, a program, its assessment."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from flowevolve.algorithms.code_evolve.config import CodeEvolveConfig
from flowevolve.algorithms.code_evolve.islands import Place
from flowevolve.algorithms.code_evolve.payloads import Chosen, Made, Operator, Prompted
from flowevolve.core.artifact import Artifact
from flowevolve.core.context import StageContext
from flowevolve.core.discard_reasons import UNCHANGED, UNREADABLE
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.pool import Candidate
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.core.templates import Prompt, Templates
from flowevolve.prompts.programs import (
    Change,
    listed_programs,
    program_prompt,
    shown_files,
    shown_outcome,
    shown_task,
)
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.reading.instructions import is_whole, read_instruction
from flowevolve.stages import Assess, Writing, as_shown, ask, write_program
from flowevolve.stages.forms import KINDS, REWRITES

CODE, META = "code", "meta"
"""The LLM roles."""
INSTRUCTIONS = "instructions"
"""The component of a prompt."""
_CHANGES: Mapping[Operator, Change] = {"start": "start", "exploit": "depth", "explore": "explore"}
FIRST_INSTRUCTIONS = """\
- Find out what limits the score of the program, and work on that first.
- Choose a method that suits the task, and carry it through to the end: loose ends cost more than they bring.
- Look at how the other programs go about it, where some are shown, and take over what makes them good.
- Stay within the time that a program has: an answer that comes too late counts for nothing."""
"""The prompt that islands begin with, unless the user gives one."""


@dataclass(frozen=True)
class Meta:
    """Has a prompt improved, given a program and its outcome."""

    statement: str

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        chosen = item.expect(Chosen)
        prompt = meta_prompt(context.templates, self.statement, chosen.prompt, chosen.parent, chosen.failed)
        before = chosen.prompt.artifact[INSTRUCTIONS]
        read = partial(read_instruction, parent=before, longest=context.templates.longest(before))
        try:
            text = await ask(context, META, prompt, read, agent="meta", candidate=chosen.prompt.id, whole=is_whole)
        except UnparsableReplyError as error:
            raise Discard(UNREADABLE) from error
        artifact = Artifact({INSTRUCTIONS: text})
        if artifact == chosen.prompt.artifact:
            raise Discard(UNCHANGED)
        attributes = {**Place(island=chosen.island).to_json(), "program": chosen.parent.id}
        new = context.propose(
            artifact, parents=[chosen.prompt], operator="meta", attributes=attributes, born=item.version
        )
        yield Emit(Prompted(new, chosen))


@dataclass(frozen=True)
class Generate:
    """Has a program written from its parent with the prompt, showing ancestors and inspirations."""

    statement: str
    config: CodeEvolveConfig
    writing: Writing

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        new = item.payload.candidate if isinstance(item.payload, Prompted) else None
        chosen = item.payload.chosen if isinstance(item.payload, Prompted) else item.expect(Chosen)
        prompt = new or chosen.prompt
        asked = self.writing.forms.assign(
            chosen.parent,
            chosen.inspirations,
            context,
            kinds=REWRITES if chosen.operator == "start" else KINDS,
            usable=lambda program: Place.of(program).island == chosen.island,
        )
        text = program_prompt(
            context.templates,
            self.statement,
            as_shown(asked.parent),
            form=asked.form,
            change=asked.change or _CHANGES[chosen.operator],
            others=[as_shown(each) for each in asked.others],
            ancestors=[] if asked.change else [as_shown(each) for each in chosen.ancestors],
            instructions=prompt.artifact[INSTRUCTIONS],
            further=asked.further,
        )
        program = await write_program(
            asked.parent,
            text,
            asked.form,
            context,
            role=self.config.exploring_role if chosen.operator == "explore" else CODE,
            operator=chosen.operator,
            parents=asked.parents([] if chosen.operator == "start" else [chosen.parent]),
            born=item.version,
            writing=self.writing,
            others=asked.others,
            attributes={**Place(island=chosen.island, prompt=prompt.id).to_json(), **asked.attributes},
        )
        yield Emit(Made(program, new))


@dataclass(frozen=True)
class Evaluate:
    """Runs a program on all cases. One that fails a case does not work, and has the worst score on all of them."""

    assess: Assess
    worst: float

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        made = item.expect(Made)
        assessed = await self.assess.assess(made.program, context)
        program = assessed.candidate
        if assessed.failure is not None:
            program = program.scored(dict.fromkeys(program.scores, self.worst))
        yield Emit(replace(made, program=program))


def meta_prompt(
    templates: Templates, statement: str, prompt: Candidate, program: Candidate, failed: Candidate | None
) -> Prompt:
    """Ask for a better prompt than this one, given a program, and one that was written with the prompt and failed."""
    return templates.write(
        "meta",
        lambda shorten: {
            "data": templates.text("data"),
            "instructions": fence(prompt.artifact[INSTRUCTIONS]),
            "statement": shown_task(statement),
            "program": shown_files(program.artifact, shorten),
            "outcome": shown_outcome(as_shown(program), shorten),
            "failed": "" if failed is None else listed_programs("Program", [as_shown(failed)], shorten),
        },
    )
