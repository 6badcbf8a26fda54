"""CSE's writing stage: programs to plans, mutations, crossovers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial

from flowevolve.agents.plan import implement_prompt
from flowevolve.agents.slots import crossover_prompt, mutation_prompt
from flowevolve.algorithms.cse.payloads import Brief, Planned
from flowevolve.algorithms.cse.slots import Frozen, crossing, keep_to, mutation
from flowevolve.context import StageContext
from flowevolve.item import Item
from flowevolve.llm.types import JSON
from flowevolve.pool import Candidate
from flowevolve.programs.prompts import Form, program_prompt
from flowevolve.stage import Emit
from flowevolve.stages.coding import as_shown, write_program
from flowevolve.stages.payloads import Written

CODE = "code"
"""The role that plans and writes programs."""
IMPLEMENT = "implement"
"""The operator of programs that were written to a plan."""


@dataclass(frozen=True)
class Write:
    """A child that changes what is frozen is mended, or discarded where it can't be."""

    statement: str
    form: Form

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if isinstance(item.payload, Planned):
            program = await self._to_plan(item.payload, item.version, context)
        else:
            program = await self._child(item.expect(Brief), item.version, context)
        yield Emit(Written(program), derives=program.parents)

    async def _to_plan(self, planned: Planned, born: int, context: StageContext) -> Candidate:
        return await write_program(
            planned.form,
            implement_prompt(self.statement, planned.form.artifact, planned.plan, advice=planned.recalled),
            "whole",
            context,
            role=CODE,
            operator=IMPLEMENT,
            parents=(),
            born=born,
            attributes={"plan": planned.plan},
        )

    async def _child(self, brief: Brief, born: int, context: StageContext) -> Candidate:
        parents = [context.pool[name] for name in brief.parents]
        prompt, frozen = self._request(brief, parents)
        kept: dict[str, JSON] = {name: [*each.parts] for name, each in zip(brief.parents, frozen, strict=False)}
        return await write_program(
            parents[0],
            prompt,
            self.form,
            context,
            role=CODE,
            operator=brief.operator,
            parents=parents,
            born=born,
            attributes={"frozen": kept} if kept else {},
            mend=partial(keep_to, frozen, context),
        )

    def _request(self, brief: Brief, parents: Sequence[Candidate]) -> tuple[str, list[Frozen]]:
        """The prompt, and what it says is to be kept of each parent."""
        first = parents[0]
        match brief.operator:
            case "refine":
                return program_prompt(self.statement, as_shown(first), form=self.form, advice=brief.advice), []
            case "mutate":
                changes = mutation(first.artifact, brief.slots[0])
                prompt = mutation_prompt(
                    self.statement,
                    as_shown(first),
                    changes.keep,
                    changes.improve,
                    changes.why,
                    form=self.form,
                    advice=brief.advice,
                )
                return prompt, [Frozen(first.artifact, changes.keep)]
            case "crossover":
                taken = crossing(first.artifact, *brief.slots)
                prompt = crossover_prompt(
                    self.statement,
                    as_shown(first),
                    as_shown(parents[1]),
                    taken.first,
                    taken.second,
                    taken.why,
                    form=self.form,
                    advice=brief.advice,
                )
                return prompt, [Frozen(first.artifact, taken.first), Frozen(parents[1].artifact, taken.second)]
