"""Local memory as stages: they learn from changes, and shorten a memory that has become too long.

    … ─▶ assess ─▶ reflect ─▶ update ─▶ compress ─▶ update

`Reflect` takes `Assessed` and emits `Reflected`, `Compress` takes `Compression` and emits `Compressed`; the committing
stage applies them with `learn` and `shorten`. A candidate goes on even if its reflection fails. Candidates wait for
reflection in a queue like any items: those that were evaluated when a run was interrupted are reflected on when it is
resumed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from flowevolve.algorithms.cse.memory import Learned, Memory, compressed_note, learned_note, render, tokens_of
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item
from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate, Change, Note
from flowevolve.core.record import Record
from flowevolve.prompts.memory import (
    DIRECTIONS_KEPT,
    LESSONS_KEPT,
    Digest,
    Direction,
    DirectionOutcome,
    Insight,
    compress_prompt,
    read_digest,
    read_insight,
    reflect_prompt,
    shown_board,
)
from flowevolve.stages import Assessed, as_shown, try_asking

AGENT = "agent"
"""The role that reflects and compresses, by default."""


@payload("memory.Reflected")
@dataclass(frozen=True, slots=True)
class Reflected:
    """An assessed candidate, and what it has taught: None if it has no parent, or no reply could be read."""

    candidate: Candidate
    failure: str | None
    learned: Learned | None


@payload("memory.Compression")
@dataclass(frozen=True, slots=True)
class Compression:
    """A request to make the memory shorter."""


@payload("memory.Compressed")
@dataclass(frozen=True, slots=True)
class Compressed:
    """A memory made shorter: the ids and counts of the entries that were read, and what was written."""

    read: Mapping[str, int]
    written: Digest


class MemoryRead(Record, kind="memory.read"):
    """The memory as a prompt shows it, and the version of the pool that it was read at."""

    text: str
    version: int


class Board(Record, kind="memory.board"):
    """The directions that a reflection is shown."""

    directions: str
    version: int


class Compressing(Record, kind="memory.compressing"):
    """What a compression has read: the ids and counts of entries, and what they say."""

    read: Mapping[str, int]
    memory: dict[str, JsonValue]
    version: int


class CompressionDue(Record, kind="memory.due"):
    """Whether a compression begins with a lesson."""

    due: bool


def score_change(parent: Candidate, child: Assessed) -> float:
    """By how much the mean score rose."""
    return child.candidate.mean_score - parent.mean_score


def recollect(memory: Memory, context: StageContext) -> MemoryRead:
    """The memory now. Work on this item that is repeated after a crash reads the same version."""
    return context.decide(MemoryRead, lambda: MemoryRead(text=render(memory), version=context.pool.version))


@dataclass(frozen=True)
class Reflect:
    """Learns from the change between a candidate and its first parent, even if the candidate failed.

    ``change`` computes how much the score rose; by default that is the difference of the mean scores. With a
    ``memory``, the prompt shows its directions.
    """

    statement: str
    role: str = AGENT
    change: Callable[[Candidate, Assessed], float] = score_change
    memory: Memory | None = None

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        assessed = item.expect(Assessed)
        yield Emit(Reflected(assessed.candidate, assessed.failure, await self.reflect(assessed, context)))

    async def reflect(self, assessed: Assessed, context: StageContext) -> Learned | None:
        """Reflect on an assessed candidate by one LLM call. None if it has no parent or no reply can be read."""
        child = assessed.candidate
        if not child.parents:
            return None
        parent = context.pool[child.parents[0]]
        change = self.change(parent, assessed)
        shown = as_shown(parent), as_shown(child, assessed.failure)
        prompt = reflect_prompt(context.templates, self.statement, *shown, change, self._board(context))
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
        return context.decide(
            Board, lambda: Board(directions=shown_board(memory.directions), version=context.pool.version)
        ).directions


@dataclass(frozen=True)
class Compress:
    """Has a memory rewritten in fewer words, by one call. If it is still too long, or no reply can be read, only the
    directions that were tried most and the latest lessons are kept.

    The memory may grow meanwhile, because the commit replaces only the entries that were read.
    """

    memory: Memory
    role: str = AGENT

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        item.expect(Compression)
        memory = self.memory
        begun = context.decide(
            Compressing,
            lambda: Compressing(read=memory.read, memory=memory.digest.to_json(), version=context.pool.version),
        )
        digest = Digest.of(begun.memory)
        prompt = compress_prompt(context.templates, digest, memory.limit_tokens // 2)
        written = await try_asking(context, self.role, prompt, read_digest, agent="compress")
        yield Emit(Compressed(begun.read, _within(written or digest, memory.limit_tokens)), version=begun.version)


@dataclass(frozen=True, slots=True)
class Learning:
    """How a lesson enters the memory: changes to commit, and what to emit after the commit."""

    changes: Sequence[Change]
    emissions: Sequence[Emit]


def learn(learned: Learned | None, memory: Memory, context: StageContext) -> Learning:
    """For the committing stage: what to commit with a candidate, and what to emit after that."""
    if learned is None:
        return Learning((), ())
    due = context.decide(CompressionDue, lambda: CompressionDue(due=memory.due(learned))).due
    return Learning(
        (learned_note(learned, memory.pool, compress=due),),
        (Emit(Compression(), to="compress"),) if due else (),
    )


def shorten(compressed: Compressed, memory: Memory) -> Note:
    """For the committing stage: the change that applies a compression."""
    return compressed_note(compressed.read, compressed.written, memory.pool)


def _true_to(insight: Insight, change: float, failure: str | None) -> Insight:
    """The insight with the outcome that was measured. If the program works, the reply may call the outcome neutral,
    however much the score changed: no measurement says which changes of the score are more than chance.
    """
    said = insight.direction.outcome
    measured: DirectionOutcome = "success" if change > 0 else "failed"
    outcome = said if said == "neutral" and failure is None else measured
    return replace(insight, direction=Direction(insight.direction.direction, outcome))


def _within(digest: Digest, tokens: int) -> Digest:
    """The directions that were tried most and the latest lessons, as many as are allowed and fit into the tokens."""
    directions, lessons = list(digest.directions), list(digest.lessons[-LESSONS_KEPT:])
    while len(directions) > DIRECTIONS_KEPT or (directions and tokens_of(directions, ()) > tokens):
        directions.remove(min(directions, key=lambda each: each[1]))
    while lessons and tokens_of(directions, lessons) > tokens:
        del lessons[0]
    return Digest(tuple(directions), tuple(lessons))
