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
from flowevolve.experience.entries import Entry, MemoryUnavailableError, text_to_embed
from flowevolve.experience.store import GlobalMemory
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
"""Gives the memory of a run; None if it has none. It is called only when the memory is needed, because a run's memory
is opened after its stages are made.
"""


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
    """What was added to the memory, and a digest of the steps that it was made from."""

    steps: str
    entries: tuple[Entry, ...]


Answer = TypeVar("Answer", Looked, Recalled)


@dataclass(frozen=True)
class Recall:
    """Looks up experience with other tasks: one call writes ``queries`` queries, and the ``top`` entries nearest to
    each are taken. They may also be from earlier runs of the same task.

    An empty memory costs no call. If the memory does not answer, or the reply can't be read, the stage goes on without
    experience.
    """

    statement: str
    memory: OpenMemory
    role: str = AGENT
    queries: int = 3
    top: int = 3

    async def recall(self, program: ShownProgram, known: str, context: StageContext) -> tuple[Entry, ...]:
        """Entries that may help to improve a program; of those that say nearly the same, only the nearest. ``known`` is
        what the run has learnt about its own task.

        Work on this item that is repeated gets the same entries, even if other runs have added to the memory meanwhile.
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
        """At the end of a run, distil these steps by one LLM call, and add the result to the global memory.

        Returns the entries that were added. Nothing is done if exactly these steps were distilled last. If the store
        fails or there are no vectors, nothing is added, and the next end of the run tries again.
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
        """For the algorithm's `apply_event`: a resumed run that ends with the same steps does not distil them again."""
        if event.kind == Distilled.kind:
            self._done = Distilled.from_json(event.data).steps


def shown_entries(entries: Sequence[Entry]) -> str:
    """Entries as prompts for programs show them; empty where there are none."""
    return "\n".join("\n  ".join([f"- {entry.title}", *entry.text.splitlines()]) for entry in entries)


async def _embedded(memory: GlobalMemory, texts: Sequence[str], context: StageContext) -> Sequence[Vector] | None:
    """The texts' vectors; None if the call failed."""
    try:
        return await memory.embed(texts, context) if texts else ()
    except LLMError as error:
        context.log("reply.missing", agent="embedding", error=str(error))
        return None


async def _settled(record: type[Answer], make: Callable[[], Awaitable[Answer]], context: StageContext) -> Answer:
    """What the store says, or said before a crash. Its failures are logged as events of their own, so that they are
    noticed.
    """
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
