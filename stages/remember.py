"""Local memory as stages: what a change has taught, and a memory that has become too long made shorter.

    … ─▶ assess ─▶ reflect ─▶ update ─▶ compress ─▶ update

`Reflect` takes `Assessed` and emits `Reflected`, `Compress` takes `Compression` and emits `Compressed`; the committing
stage works them in with `learn` and `shorten`. A candidate goes on whatever becomes of its reflection. Candidates wait
for a reflection as items do: what was evaluated when a run was interrupted is reflected on when it goes on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from flowevolve.agents.memory import (
    DIRECTIONS_KEPT,
    LESSONS_KEPT,
    Digest,
    Direction,
    Insight,
    Outcome,
    compress_prompt,
    read_digest,
    read_insight,
    reflect_prompt,
    shown_board,
)
from flowevolve.archives.memory import Learned, Memory, compressed_note, learned_note, render, tokens_of
from flowevolve.context import StageContext
from flowevolve.item import Item
from flowevolve.kinds import payload
from flowevolve.llm.types import JSON
from flowevolve.pool import Candidate, Change, Note
from flowevolve.stage import Emit
from flowevolve.stages.asking import try_asking
from flowevolve.stages.coding import as_shown
from flowevolve.stages.payloads import Assessed

AGENT = "agent"
"""The role that reflects and compresses, by default."""


@payload("memory.Reflected")
@dataclass(frozen=True, slots=True)
class Reflected:
    """An assessed candidate, and what it has taught: None where it has no parent, or no reply could be read."""

    candidate: Candidate
    failure: str | None
    learned: Learned | None


@payload("memory.Compression")
@dataclass(frozen=True, slots=True)
class Compression:
    """The memory is to be made shorter."""


@payload("memory.Compressed")
@dataclass(frozen=True, slots=True)
class Compressed:
    """A memory made shorter: what was read of it (ids and counts), and what was written."""

    read: Mapping[str, int]
    written: Digest


@dataclass(frozen=True, slots=True)
class Recollection:
    """A memory as a prompt shows it, and the version of the pool it is of."""

    text: str
    version: int


def score_change(parent: Candidate, child: Assessed) -> float:
    """By how much the mean score rose."""
    return child.candidate.mean_score - parent.mean_score


def recollect(memory: Memory, context: StageContext) -> Recollection:
    """The memory now, settled for this item as `memory.read`: work that is done again after a crash reads the same."""
    settled = context.decide("memory.read", lambda: {"text": render(memory), "version": context.pool.version})
    return Recollection(str(settled["text"]), int(str(settled["version"])))


@dataclass(frozen=True)
class Reflect:
    """Learns from the change between a candidate and its first parent; a candidate that failed teaches, too.

    ``change`` says by how much the score rose, where that is not the difference of the mean scores. With a ``memory``
    the directions in it are shown, settled for this item as `memory.board`.
    """

    statement: str
    role: str = AGENT
    change: Callable[[Candidate, Assessed], float] = score_change
    memory: Memory | None = None

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        assessed = item.expect(Assessed)
        yield Emit(Reflected(assessed.candidate, assessed.failure, await self.reflect(assessed, context)))

    async def reflect(self, assessed: Assessed, context: StageContext) -> Learned | None:
        """One call, for stages that make it a part of theirs; None where nothing came of it."""
        child = assessed.candidate
        if not child.parents:
            return None
        parent = context.pool[child.parents[0]]
        change = self.change(parent, assessed)
        shown = as_shown(parent), as_shown(child, assessed.failure)
        prompt = reflect_prompt(self.statement, *shown, change, self._board(context))
        insight = await try_asking(context, self.role, prompt, read_insight, agent="reflect", candidate=child.id)
        return (
            None
            if insight is None
            else Learned(child.id, parent.id, change, _true_to(insight, change, assessed.failure))
        )

    def _board(self, context: StageContext) -> str:
        memory = self.memory
        if memory is None:
            return ""
        settled = context.decide(
            "memory.board", lambda: {"directions": shown_board(memory.directions), "version": context.pool.version}
        )
        return str(settled["directions"])


@dataclass(frozen=True)
class Compress:
    """Writes a memory anew in fewer words, by one call. What is too long even so, or where no reply can be read, is cut
    down to the directions that were tried most and the latest lessons.

    The memory may go on growing meanwhile: the commit puts what was written in the place of what was read alone.
    """

    memory: Memory
    role: str = AGENT

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        item.expect(Compression)
        memory = self.memory
        settled = context.decide(
            "memory.compressing",
            lambda: {"read": dict(memory.read), "memory": memory.digest.to_json(), "version": context.pool.version},
        )
        digest = Digest.of(cast("dict[str, JSON]", settled["memory"]))
        prompt = compress_prompt(digest, memory.limit_tokens // 2)
        written = await try_asking(context, self.role, prompt, read_digest, agent="compress")
        read = cast("dict[str, int]", settled["read"])
        fitting = _within(written or digest, memory.limit_tokens)
        yield Emit(Compressed(read, fitting), version=int(str(settled["version"])))


@dataclass(frozen=True, slots=True)
class Learning:
    """What working in a lesson takes: changes to commit, and emissions after that."""

    changes: Sequence[Change]
    emissions: Sequence[Emit]


def learn(learned: Learned | None, memory: Memory, context: StageContext, to: str = "compress") -> Learning:
    """For the committing stage: what to commit with a candidate, and what to emit after that, to the stage ``to``."""
    if learned is None:
        return Learning((), ())
    due = bool(context.decide("memory.due", lambda: {"due": memory.due(learned)})["due"])
    return Learning(
        (learned_note(learned, memory.pool, compress=due),),
        (Emit(Compression(), to=to),) if due else (),
    )


def shorten(compressed: Compressed, memory: Memory) -> Note:
    """For the committing stage: the change that works a compression in."""
    return compressed_note(compressed.read, compressed.written, memory.pool)


def _true_to(insight: Insight, change: float, failure: str | None) -> Insight:
    """An insight whose outcome is not at odds with what was measured; of a program that works it may be neutral, by
    however much the score changed: no measure says from where on that is more than chance.
    """
    said = insight.direction.outcome
    measured: Outcome = "success" if change > 0 else "failed"
    outcome = said if said == "neutral" and failure is None else measured
    return replace(insight, direction=Direction(insight.direction.direction, outcome))


def _within(digest: Digest, tokens: int) -> Digest:
    """The directions that were tried most and the latest lessons: as many as there may be, and as there is room for."""
    directions, lessons = list(digest.directions), list(digest.lessons[-LESSONS_KEPT:])
    while len(directions) > DIRECTIONS_KEPT or (directions and tokens_of(directions, ()) > tokens):
        directions.remove(min(directions, key=lambda each: each[1]))
    while lessons and tokens_of(directions, lessons) > tokens:
        del lessons[0]
    return Digest(tuple(directions), tuple(lessons))
