"""CSE's entry stage, and the repair of what was begun before something was learnt."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from flowevolve.algorithms.cse.config import CSEConfig
from flowevolve.algorithms.cse.payloads import Brief, Operator
from flowevolve.algorithms.cse.population import Population, Reward, sample
from flowevolve.archives.memory import Memory
from flowevolve.context import StageContext
from flowevolve.item import Item, Stale, Ticket
from flowevolve.llm.types import JSON
from flowevolve.stage import Emit, Exhausted
from flowevolve.stages.remember import recollect

SELECTED = "cse.selected"


@dataclass(frozen=True)
class Select:
    """Odd steps mutate, even ones cross; a step is an ordinary ticket, counted from 1. Two parents are different ones,
    so while there is one program alone, it is mutated.
    """

    population: Population
    memory: Memory
    reward: Reward
    config: CSEConfig

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        step = item.expect(Ticket).ordinal + 1
        chosen = context.decide(SELECTED, lambda: self._choose(step, context))
        parents = tuple(cast("list[str]", chosen["parents"]))
        brief = Brief(cast(Operator, chosen["operator"]), parents, str(chosen["best"]))
        version = cast(int, chosen["version"])
        if self.config.local_memory:
            known = recollect(self.memory, context)
            brief, version = replace(brief, local=known.text), known.version
        yield Emit(brief, version=version, derives=parents)

    def _choose(self, step: int, context: StageContext) -> Mapping[str, JSON]:
        best = self.population.best()
        if best is None:
            raise Exhausted
        crosses = self.config.evolution and step % 2 == 0
        parents = sample(self.population.candidates, self.reward, 1 + crosses, context.random)
        operator: Operator = "crossover" if len(parents) > 1 else "mutate" if self.config.evolution else "refine"
        return {
            "step": step,
            "operator": operator,
            "parents": [each.id for each in parents],
            "best": best.id,
            "version": context.pool.version,
        }


@dataclass(frozen=True)
class Renew:
    """Lets a child that is not written yet be written by what is known now. It costs no call: what was recalled of
    other tasks and what was found in its parents does not change.
    """

    memory: Memory

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        stale = item.expect(Stale)
        known = recollect(self.memory, context)
        brief = replace(stale.item.expect(Brief), local=known.text)
        yield Emit(brief, to=stale.back_to, version=known.version)
