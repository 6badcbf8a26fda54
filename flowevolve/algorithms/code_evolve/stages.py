"""CodeEvolve's stages between selection and update: a better prompt, a program, its assessment."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from flowevolve.algorithms.code_evolve.config import CodeEvolveConfig
from flowevolve.algorithms.code_evolve.payloads import Chosen, Made, Prompted
from flowevolve.algorithms.code_evolve.prompts import INSTRUCTIONS, meta_prompt
from flowevolve.archives.islands import ISLAND, PROMPT
from flowevolve.artifact import Artifact
from flowevolve.context import StageContext
from flowevolve.item import Item
from flowevolve.llm.types import JSON, UnparsableReplyError
from flowevolve.programs.prompts import program_prompt
from flowevolve.prompts import parse_instruction
from flowevolve.stage import Discard, Emit
from flowevolve.stages.asking import ask
from flowevolve.stages.assess import Assess
from flowevolve.stages.coding import as_shown, write_program

CODE, META = "code", "meta"
"""The LLM roles."""


@dataclass(frozen=True)
class Meta:
    """Has a prompt enriched with what became of a program."""

    statement: str

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        chosen = item.expect(Chosen)
        prompt = meta_prompt(self.statement, chosen.prompt, chosen.parent, chosen.failed)
        try:
            text = await ask(context, META, prompt, parse_instruction, agent="meta", candidate=chosen.prompt.id)
        except UnparsableReplyError as error:
            raise Discard("unparsable reply") from error
        artifact = Artifact({INSTRUCTIONS: text})
        if artifact == chosen.prompt.artifact:
            raise Discard("unchanged")
        attributes: dict[str, JSON] = {ISLAND: chosen.island, "program": chosen.parent.id}
        new = context.propose(
            artifact, parents=[chosen.prompt], operator="meta", attributes=attributes, born=item.version
        )
        yield Emit(Prompted(new, chosen))


@dataclass(frozen=True)
class Generate:
    """Has a program written: of its parent, with ancestors and inspirations, by the prompt."""

    statement: str
    config: CodeEvolveConfig

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        new = item.payload.candidate if isinstance(item.payload, Prompted) else None
        chosen = item.payload.chosen if isinstance(item.payload, Prompted) else item.expect(Chosen)
        prompt = new or chosen.prompt
        text = program_prompt(
            self.statement,
            as_shown(chosen.parent),
            form=self.config.form,
            others=[as_shown(each) for each in chosen.inspirations],
            ancestors=[as_shown(each) for each in chosen.ancestors],
            instructions=prompt.artifact[INSTRUCTIONS],
        )
        program = await write_program(
            chosen.parent,
            text,
            self.config.form,
            context,
            role=self.config.exploring_role if chosen.operator == "explore" else CODE,
            operator=chosen.operator,
            parents=[] if chosen.operator == "start" else [chosen.parent],
            born=item.version,
            attributes={ISLAND: chosen.island, PROMPT: prompt.id},
        )
        yield Emit(Made(program, new))


@dataclass(frozen=True)
class Evaluate:
    """Runs a program on all cases. One that fails a case has the worst score on all of them: it does not work."""

    assess: Assess
    worst: float

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        made = item.expect(Made)
        assessed = await self.assess.assess(made.program, context)
        program = assessed.candidate
        if assessed.failure is not None:
            program = program.scored(dict.fromkeys(program.scores, self.worst))
        yield Emit(replace(made, program=program))
