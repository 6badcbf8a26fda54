"""CodeEvolve's committing stage: commits programs and their prompts' fitness, and migrates programs between islands."""

from __future__ import annotations

from dataclasses import dataclass, replace

from flowevolve.algorithms.code_evolve.config import MigrationSettings, Topology
from flowevolve.algorithms.code_evolve.islands import PROGRAMS, PROMPTS, Island, Islands, Place
from flowevolve.algorithms.code_evolve.payloads import Made
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import works
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.item import Item
from flowevolve.core.pool import MIGRATE, SEED, Add, Annotate, Candidate, Change
from flowevolve.core.record import Record

BEST_CHILD = "best child"
"""The name under which a prompt is scored."""


class Placed(Record, kind="code_evolve.placed"):
    """The island that a program from outside goes to."""

    island: int


class Migrated(Record, kind="code_evolve.migrated"):
    """The programs of an island that leave it, by their ids, and the islands that each of them goes to."""

    island: int
    programs: tuple[str, ...]
    to: tuple[int, ...]


@dataclass(frozen=True)
class Commit:
    """A failed program enters as ``rejected``, with the worst score and its feedback, so that it can be shown later."""

    islands: Islands
    migration: MigrationSettings
    instructions: Artifact
    """The prompt that all islands begin with."""

    async def __call__(self, item: Item[object], context: UpdateContext) -> None:
        made = item.expect(Made)
        if made.program.operator == SEED:
            self._add_seed(made.program, context)
        else:
            self._enter(self._placed(made.program, context), made.prompt, context)

    def _add_seed(self, seed: Candidate, context: UpdateContext) -> None:
        """Put the seed on every island, with the prompt that the island begins with."""
        changes: list[Change] = []
        for island in self.islands:
            home = Place(island=island.index).to_json()
            prompt = context.propose(self.instructions, parents=[], operator=SEED, attributes=home)
            copy = context.propose(seed.artifact, parents=[], operator=SEED) if island.index else seed
            copy = replace(copy, attributes=seed.attributes, scores=seed.scores)
            changes.append(_added(Place(island=island.index, prompt=prompt.id).on(copy)))
            changes.append(Add(prompt.scored({BEST_CHILD: seed.mean_score}), pool=PROMPTS))
        context.commit(changes)

    def _placed(self, program: Candidate, context: StageContext) -> Candidate:
        """Place a program from outside on the island with the fewest evaluations."""
        if Place.of(program).island is not None:
            return program
        index = context.decide(Placed, lambda: Placed(island=self._smallest().index)).island
        return Place(island=index, prompt=self.islands[index].first_prompt.id).on(program)

    def _smallest(self) -> Island:
        return min(self.islands, key=lambda island: (island.evaluations, island.index))

    def _enter(self, program: Candidate, prompt: Candidate | None, context: UpdateContext) -> None:
        changes: list[Change] = [_added(program)]
        name = str(Place.of(program).prompt)
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
        """Copy the island's best programs that may leave to its neighbours, as roots there (§4.4)."""
        targets = neighbours(self.migration.topology, island.index, len(self.islands))
        if not targets:
            return
        migrated = context.decide(Migrated, lambda: self._emigrants(island, targets))
        programs = [context.pool[name] for name in migrated.programs]
        changes = [_added(_copied(program, target, context)) for target in migrated.to for program in programs]
        if changes:
            context.commit(changes)

    def _emigrants(self, island: Island, targets: tuple[int, ...]) -> Migrated:
        programs = tuple(each.id for each in island.emigrants(self.migration.rate))
        return Migrated(island=island.index, programs=programs, to=targets)


def _copied(program: Candidate, target: int, context: StageContext) -> Candidate:
    place = Place(island=target, origin=program.id, home=Place.of(program).island)
    attributes = place.on(program).attributes
    copy = context.propose(program.artifact, parents=[], operator=MIGRATE, attributes=attributes)
    return replace(copy, scores=program.scores)


def _added(program: Candidate) -> Add:
    return Add(program, "confirmed" if works(program) else "rejected", pool=PROGRAMS)


def neighbours(topology: Topology, island: int, count: int) -> tuple[int, ...]:
    """Where the migrants of an island go, in ascending order; the island itself is never among them.

    In a ring these are the islands on both sides.
    """
    if topology == "empty":
        return ()
    if topology == "ring":
        return tuple(sorted({(island - 1) % count, (island + 1) % count} - {island}))
    return tuple(other for other in range(count) if other != island)
