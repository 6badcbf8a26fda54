"""Global memory as parts of stages: they look up experience with other tasks, and add what a run has learnt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TypeVar

from flowevolve._util.clock import in_thread
from flowevolve.algorithms.cse.remember import AGENT
from flowevolve.core.context import StageContext
from flowevolve.core.events import Event
from flowevolve.core.model import LLMError
from flowevolve.core.record import Record
from flowevolve.experience.embedders import Vector
from flowevolve.experience.store import Entry, GlobalMemory, MemoryUnavailableError, text_to_embed
from flowevolve.policies.similarity import Likeness, near_groups
from flowevolve.prompts.memory import (
    Step,
    distill_prompt,
    queries_prompt,
    read_advice,
    read_queries,
)
from flowevolve.prompts.programs import ShownProgram
from flowevolve.stages import try_asking

OpenMemory = Callable[[], GlobalMemory | None]
"""The memory of a run; None where there is none. Asked when it is needed, as a run's memory is opened after its stages
are made."""


class Looked(Record, kind="memory.looked"):
    """How many entries the memory has."""

    entries: int
    error: str | None = None


class Recalled(Record, kind="memory.recalled"):
    """What was searched for, and what was found."""

    queries: tuple[str, ...]
    entries: tuple[Entry, ...]
    error: str | None = None


class Distilled(Record, kind="memory.distilled"):
    """What was added to the memory, and a digest of the steps that it was made of."""

    steps: str
    entries: tuple[Entry, ...]


Answer = TypeVar("Answer", Looked, Recalled)


@dataclass(frozen=True)
class Recall:
    """Looks up experience with other tasks: one call writes ``queries``, then the ``top`` entries nearest to each are
    taken. What earlier runs of the same task have left is among them.

    An empty memory costs no call. Where the memory does not answer, or the reply can't be read, the stage goes on
    without experience.
    """

    statement: str
    memory: OpenMemory
    role: str = AGENT
    queries: int = 3
    top: int = 3

    async def recall(self, program: ShownProgram, known: str, context: StageContext) -> tuple[Entry, ...]:
        """Entries that may help to improve a program; of those that say nearly the same, only the nearest. ``known``
        is what is known of its own task.

        They are settled for this item, as other runs may add to the memory meanwhile.
        """
        memory = self.memory()
        if memory is None:
            return ()
        if not (await _settled(Looked, partial(_look, memory), context)).entries:
            return ()
        prompt = queries_prompt(context.templates, self.statement, program, known, self.queries)
        read = partial(read_queries, count=self.queries)
        queries = await try_asking(context, self.role, prompt, read, agent="queries")
        vectors = None if queries is None else await _embedded(memory, queries, context)
        if queries is None or vectors is None:
            return ()
        return (await _settled(Recalled, partial(_search, memory, queries, vectors, self.top), context)).entries


@dataclass
class Distill:
    """Adds to the global memory what the steps of a run that changed its score most can teach others."""

    task: str
    statement: str
    memory: OpenMemory
    role: str = AGENT
    _done: str | None = field(default=None, init=False)
    """A digest of the steps that were distilled last."""

    async def distill(
        self, best: ShownProgram, improving: Sequence[Step], degrading: Sequence[Step], context: StageContext
    ) -> tuple[Entry, ...]:
        """At the end of a run, distil these steps by one LLM call, and add what comes of it to the global memory.

        Returns the entries that were added. Steps that were distilled before are left out. If the store fails or there
        are no vectors, nothing is added, and the next end of the run tries again.
        """
        memory, steps = self.memory(), _digest(improving, degrading)
        if memory is None or not (improving or degrading) or steps == self._done:
            return ()
        prompt = distill_prompt(context.templates, self.statement, best, improving, degrading)
        advice = await try_asking(context, self.role, prompt, read_advice, agent="distill")
        entries = tuple(Entry(self.task, each.title, each.text) for each in advice or ())
        vectors = await _embedded(memory, [text_to_embed(entry) for entry in entries], context)
        if not entries or vectors is None:
            return ()
        try:
            await context.once(Distilled, partial(_add, memory, entries, vectors, steps))
        except MemoryUnavailableError as error:
            context.log("memory.unavailable", error=str(error))
            return ()
        return entries

    def apply_event(self, event: Event) -> None:
        """For the algorithm's `apply_event`: a run that goes on and is finished again distills only what is new."""
        if event.kind == Distilled.kind:
            self._done = Distilled.from_json(event.data).steps


def shown_entries(entries: Sequence[Entry]) -> str:
    """Entries as prompts for programs show them; empty where there are none."""
    return "\n".join("\n  ".join([f"- {entry.title}", *entry.text.splitlines()]) for entry in entries)


async def _embedded(memory: GlobalMemory, texts: Sequence[str], context: StageContext) -> Sequence[Vector] | None:
    """None where no vectors came."""
    try:
        return await memory.embed(texts, context) if texts else ()
    except LLMError as error:
        context.log("reply.missing", agent="embedding", error=str(error))
        return None


async def _settled(record: type[Answer], make: Callable[[], Awaitable[Answer]], context: StageContext) -> Answer:
    """What the store says, or said before a crash. Its failures are events as well, so that somebody notices them."""
    said = await context.once(record, make)
    if said.error is not None:
        context.log("memory.unavailable", error=said.error)
    return said


async def _look(memory: GlobalMemory) -> Looked:
    try:
        return Looked(entries=await memory.size())
    except MemoryUnavailableError as error:
        return Looked(entries=0, error=str(error))


async def _search(memory: GlobalMemory, queries: Sequence[str], vectors: Sequence[Vector], top: int) -> Recalled:
    try:
        found = await memory.search(vectors, top)
    except MemoryUnavailableError as error:
        return Recalled(queries=tuple(queries), entries=(), error=str(error))
    groups = await in_thread(near_groups, [each.vector for each in found], Likeness().duplicate)
    repeated = {place for group in groups for place in group[1:]}
    entries = tuple(each.entry for place, each in enumerate(found) if place not in repeated)
    return Recalled(queries=tuple(queries), entries=entries)


async def _add(memory: GlobalMemory, entries: tuple[Entry, ...], vectors: Sequence[Vector], steps: str) -> Distilled:
    await memory.add(entries, vectors)
    return Distilled(steps=steps, entries=entries)


def _digest(improving: Sequence[Step], degrading: Sequence[Step]) -> str:
    """A short digest that stands for these steps."""
    return sha256(repr((tuple(improving), tuple(degrading))).encode("utf-8", "surrogatepass")).hexdigest()[:12]
