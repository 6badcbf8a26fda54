"""Global memory as parts of stages: experience with other tasks is looked up, and what a run has learnt is added."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from typing import cast

from flowevolve.agents.memory import (
    Step,
    distill_prompt,
    queries_prompt,
    read_advice,
    read_queries,
)
from flowevolve.clock import in_thread
from flowevolve.context import StageContext
from flowevolve.events import Event
from flowevolve.llm.types import JSON, LLMError
from flowevolve.memory.embedders import Vector
from flowevolve.memory.entries import Entry, MemoryUnavailableError
from flowevolve.memory.store import GlobalMemory, text_to_embed
from flowevolve.policies.similarity import Likeness, near_groups
from flowevolve.programs.prompts import ShownProgram
from flowevolve.stages.asking import try_asking
from flowevolve.stages.remember import AGENT

OpenMemory = Callable[[], GlobalMemory | None]
"""The memory of a run; None where there is none. Asked when it is needed, as a run's memory is opened after its stages
are made."""


@dataclass(frozen=True)
class Recall:
    """Looks up experience with other tasks: ``queries`` by one call, then the ``top`` entries nearest to each. What
    earlier runs of the same task have left counts, too.

    A memory that is empty costs no call; one that does not answer, or a reply that can't be read, costs the experience
    alone.
    """

    statement: str
    memory: OpenMemory
    role: str = AGENT
    queries: int = 3
    top: int = 3

    async def recall(self, program: ShownProgram, known: str, context: StageContext) -> tuple[Entry, ...]:
        """What may help to improve a program, of what says nearly the same only the nearest; ``known`` is what is known
        of its own task.

        Settled for this item as `memory.looked` and `memory.recalled`: others may add to the memory meanwhile.
        """
        memory = self.memory()
        if memory is None:
            return ()
        looked = await _settled("memory.looked", partial(_look, memory), context)
        if not looked["entries"]:
            return ()
        prompt = queries_prompt(self.statement, program, known, self.queries)
        read = partial(read_queries, count=self.queries)
        queries = await try_asking(context, self.role, prompt, read, agent="queries")
        vectors = None if queries is None else await _embedded(memory, queries, context)
        if queries is None or vectors is None:
            return ()
        found = await _settled("memory.recalled", partial(_search, memory, queries, vectors, self.top), context)
        return tuple(Entry(**each) for each in cast("list[dict[str, str]]", found["entries"]))


@dataclass
class Distill:
    """Adds to the global memory what the steps of a run that changed its score most can teach others."""

    task: str
    statement: str
    memory: OpenMemory
    role: str = AGENT
    _done: str | None = field(default=None, init=False)
    """Of which steps it was done last."""

    async def distill(
        self, best: ShownProgram, improving: Sequence[Step], degrading: Sequence[Step], context: StageContext
    ) -> tuple[Entry, ...]:
        """For the run's finish: one call, and what it gives is added; nothing where that was done for these steps.

        It is not done where the store failed, or no vectors came: a run that goes on and ends again tries again.
        """
        memory, steps = self.memory(), _digest(improving, degrading)
        if memory is None or not (improving or degrading) or steps == self._done:
            return ()
        prompt = distill_prompt(self.statement, best, improving, degrading)
        advice = await try_asking(context, self.role, prompt, read_advice, agent="distill")
        entries = tuple(Entry(self.task, each.title, each.text) for each in advice or ())
        vectors = await _embedded(memory, [text_to_embed(entry) for entry in entries], context)
        if not entries or vectors is None:
            return ()
        try:
            await context.once("memory.distilled", partial(_add, memory, entries, vectors, steps))
        except MemoryUnavailableError as error:
            context.log("memory.unavailable", error=str(error))
            return ()
        self._done = steps
        return entries

    def recall(self, event: Event) -> None:
        """For the algorithm's `recall`: a run that is finished again, as one that goes on is, distills what is new."""
        if event.kind == "memory.distilled":
            self._done = str(event.data["steps"])


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


async def _settled(
    kind: str, make: Callable[[], Awaitable[Mapping[str, JSON]]], context: StageContext
) -> Mapping[str, JSON]:
    """What the store says, or said before a crash; its failures are events, too, so that somebody notices."""
    said = await context.once(kind, make)
    if "error" in said:
        context.log("memory.unavailable", error=said["error"])
    return said


async def _look(memory: GlobalMemory) -> Mapping[str, JSON]:
    try:
        return {"entries": await memory.size()}
    except MemoryUnavailableError as error:
        return {"entries": 0, "error": str(error)}


async def _search(
    memory: GlobalMemory, queries: Sequence[str], vectors: Sequence[Vector], top: int
) -> Mapping[str, JSON]:
    try:
        found = await memory.search(vectors, top)
    except MemoryUnavailableError as error:
        return {"queries": list(queries), "entries": [], "error": str(error)}
    groups = await in_thread(near_groups, [each.vector for each in found], Likeness().duplicate)
    repeated = {place for group in groups for place in group[1:]}
    entries: list[JSON] = [asdict(each.entry) for place, each in enumerate(found) if place not in repeated]
    return {"queries": list(queries), "entries": entries}


async def _add(
    memory: GlobalMemory, entries: Sequence[Entry], vectors: Sequence[Vector], steps: str
) -> Mapping[str, JSON]:
    await memory.add(entries, vectors)
    return {"steps": steps, "entries": [asdict(entry) for entry in entries]}


def _digest(improving: Sequence[Step], degrading: Sequence[Step]) -> str:
    """Names the steps."""
    return sha256(repr((tuple(improving), tuple(degrading))).encode("utf-8", "surrogatepass")).hexdigest()[:12]
