"""CodeEvolve's committing stage: programs with their prompts' fitness, and migration when an island's time has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from flowevolve.algorithms.code_evolve.config import MigrationSection
from flowevolve.algorithms.code_evolve.payloads import Made
from flowevolve.archives.elites import works
from flowevolve.archives.islands import HOME, ISLAND, MIGRATE, ORIGIN, PROGRAMS, PROMPT, PROMPTS, SEED, Island, Islands
from flowevolve.artifact import Artifact
from flowevolve.context import StageContext, UpdateContext
from flowevolve.item import Item
from flowevolve.llm.types import JSON
from flowevolve.policies.topology import neighbours
from flowevolve.pool import Add, Annotate, Candidate, Change

BEST_CHILD = "best child"
"""What a prompt is scored by."""


@dataclass(frozen=True)
class Update:
    """A failed program enters as ``rejected``, with the worst score and its log: it is shown where that helps."""

    islands: Islands
    migration: MigrationSection
    instructions: Artifact
    """The prompt that all islands begin with."""

    async def __call__(self, item: Item[object], context: UpdateContext) -> None:
        made = item.expect(Made)
        if made.program.operator == SEED:
            self._settle(made.program, context)
        else:
            self._enter(self._placed(made.program, context), made.prompt, context)

    def _settle(self, seed: Candidate, context: UpdateContext) -> None:
        """The seed on every island, with the prompt that the island begins with."""
        changes: list[Change] = []
        for island in self.islands:
            home: dict[str, JSON] = {ISLAND: island.index}
            prompt = context.propose(self.instructions, parents=[], operator=SEED, attributes=home)
            copy = context.propose(seed.artifact, parents=[], operator=SEED) if island.index else seed
            attributes = {**seed.attributes, **home, PROMPT: prompt.id}
            changes.append(_added(replace(copy, attributes=attributes, scores=seed.scores)))
            changes.append(Add(prompt.scored({BEST_CHILD: seed.mean_score}), pool=PROMPTS))
        context.commit(changes)

    def _placed(self, program: Candidate, context: StageContext) -> Candidate:
        """A program from outside goes to the island that has seen the fewest."""
        if ISLAND in program.attributes:
            return program
        index = context.decide("code_evolve.placed", lambda: {"island": self._smallest().index})["island"]
        prompt = self.islands[cast(int, index)].first_prompt
        return replace(program, attributes={**program.attributes, ISLAND: index, PROMPT: prompt.id})

    def _smallest(self) -> Island:
        return min(self.islands, key=lambda island: (island.evaluations, island.index))

    def _enter(self, program: Candidate, prompt: Candidate | None, context: UpdateContext) -> None:
        changes: list[Change] = [_added(program)]
        name = str(program.attributes[PROMPT])
        if prompt is not None:
            changes.append(Add(prompt.scored({BEST_CHILD: program.mean_score}), pool=PROMPTS))
        elif program.mean_score > context.pool[name].mean_score:
            changes.append(Annotate(name, scores={BEST_CHILD: program.mean_score}, pool=PROMPTS))
        context.commit(changes)
        island = self.islands.of(program)
        if island.epoch_over():
            self._end_epoch(island, context)

    def _end_epoch(self, island: Island, context: UpdateContext) -> None:
        now, best = island.exploring, island.best
        context.log(
            "code_evolve.epoch",
            island=island.index,
            epoch=now.epochs,
            exploration=now.rate,
            living=len(island.ranked),
            best=None if best is None else best.mean_score,
        )
        if now.epochs % self.migration.every == 0:
            self._migrate(island, context)

    def _migrate(self, island: Island, context: UpdateContext) -> None:
        """Copies of the island's best that may leave become roots on its neighbours (§4.4)."""
        targets = neighbours(self.migration.topology, island.index, len(self.islands))
        if not targets:
            return
        chosen = context.decide("code_evolve.migrated", lambda: self._emigrants(island, targets))
        programs = [context.pool[name] for name in cast("list[str]", chosen["programs"])]
        changes = [
            _added(self._copied(program, target, context))
            for target in cast("list[int]", chosen["to"])
            for program in programs
        ]
        if changes:
            context.commit(changes)

    def _emigrants(self, island: Island, targets: Sequence[int]) -> Mapping[str, JSON]:
        return {
            "island": island.index,
            "programs": [each.id for each in island.emigrants(self.migration.rate)],
            "to": list(targets),
        }

    def _copied(self, program: Candidate, target: int, context: StageContext) -> Candidate:
        attributes = {**program.attributes, ISLAND: target, ORIGIN: program.id, HOME: program.attributes[ISLAND]}
        copy = context.propose(program.artifact, parents=[], operator=MIGRATE, attributes=attributes)
        return replace(copy, scores=program.scores)


def _added(program: Candidate) -> Add:
    return Add(program, "confirmed" if works(program) else "rejected", pool=PROGRAMS)
