"""A small algorithm with a local memory, and the agent it asks, for tests of the parts that remember."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import cast

import anyio

import flowevolve as fe
from flowevolve._util.json_types import JSON
from flowevolve.algorithms.cse.memory import Memory
from flowevolve.algorithms.cse.remember import (
    Compress,
    Compressed,
    Compression,
    Reflect,
    Reflected,
    learn,
    recollect,
    shorten,
)
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import CommittingStage, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Item, Ticket
from flowevolve.core.model import ChatReply, ChatRequest, EmbedReply, EmbedRequest, RejectedError, Usage
from flowevolve.core.pool import Add, Candidate
from flowevolve.experience.hashing import hashed_embedding
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.prompts.memory import (
    CHANGE_HEADING,
    COMPRESS_TITLE,
    DISTILL_TITLE,
    MEMORY_HEADING,
    QUERIES_TITLE,
    REFLECT_TITLE,
    read_digest,
)
from flowevolve.sim.worlds.code.prompt import sections
from flowevolve.stages.payloads import Assessed, Written


class Agent:
    """A `flowevolve.core.model.Transport`: answers every agent of memory in its form, after two seconds.

    ``broken`` names titles that get an answer nobody can read, ``silent`` such that get none.
    """

    backend = "agent"

    def __init__(self, broken: frozenset[str] = frozenset(), silent: frozenset[str] = frozenset()) -> None:
        self.asked: list[str] = []
        self._broken = broken
        self._silent = silent

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        prompt = request.messages[-1].content
        title = prompt.split("\n", 1)[0]
        self.asked.append(prompt)
        await anyio.sleep(2)
        if title in self._silent:
            raise RejectedError("not this one")
        text = "I would rather not." if title in self._broken else json.dumps(_answer(title, sections(prompt)))
        return ChatReply(text, Usage(len(prompt) // 4, len(text) // 4))

    async def embed(self, request: EmbedRequest, *, timeout: float | None) -> EmbedReply:
        return EmbedReply(tuple(map(hashed_embedding, request.texts)), Usage(10), "agent")

    async def models(self) -> tuple[str, ...]:
        return ("agent",)

    async def aclose(self) -> None:
        pass

    def roles(self) -> Mapping[str, Role]:
        return {name: Model(self, "agent") for name in ("agent", "embedding")}


def _answer(title: str, parts: Mapping[str, str]) -> JSON:
    match title:
        case _ if title == REFLECT_TITLE:
            change = parts[CHANGE_HEADING].rpartition("Change: ")[2].strip()
            return {
                "direction": f"numbers by {change}",
                "outcome": "success",
                "lesson": f"It is about numbers: {change}.",
            }
        case _ if title == COMPRESS_TITLE:
            read = read_digest(parts[MEMORY_HEADING])
            return {"directions": read.to_json()["directions"], "lessons": [{"kind": "success", "text": "short"}]}
        case _ if title == QUERIES_TITLE:
            return ["unroll loops", "use fewer calls", "unroll loops"]
        case _ if title == DISTILL_TITLE:
            return [{"title": "loops", "text": "unroll them"}, {"title": "calls", "text": "make fewer"}]
    raise AssertionError(title)


class Remembering(fe.Algorithm):
    """A child of the seed for every ticket, scored by its number; every fourth one fails."""

    name = "remembering"
    roles = ("agent", "embedding")
    pools = ("main", "memory")

    def __init__(self, tickets: int = 10, limit_tokens: int = 60) -> None:
        self.memory = Memory(limit_tokens=limit_tokens)
        self.measured: list[str] = []
        self.children: list[Candidate] = []
        self.archives = (self.memory,)
        self._tickets = tickets

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        return Graph(
            (
                Stage("write", self._write, ("assess",), workers=2),
                Stage("assess", self._assess, ("reflect",), workers=3),
                Stage("reflect", Reflect("Find a number.", memory=self.memory), ("update",), workers=3),
                Stage("compress", Compress(self.memory), ("update",)),
                CommittingStage("update", self._update, ("compress",)),
            ),
            entry="write",
        )

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        seed = context.propose(fe.Artifact({"program.py": "3"}, "program"), parents=[], operator="seed")
        yield Emit(Written(seed), to="assess")

    async def _write(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        number = item.expect(Ticket).ordinal
        if number >= self._tickets:
            raise Exhausted
        recollect(self.memory, context)
        artifact = fe.Artifact({"program.py": str(number)}, "program")
        [seed] = _seeds(context)
        yield Emit(Written(context.propose(artifact, parents=[seed], operator="write")))

    async def _assess(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        candidate = item.expect(Written).candidate

        async def measure() -> Mapping[str, JSON]:
            await anyio.sleep(1)
            self.measured.append(candidate.id)
            return {"score": float(candidate.artifact["program.py"])}

        score = cast(float, (await context.once("measured", measure))["score"])
        failure = "crashed" if candidate.parents and score % 4 == 0 else None
        yield Emit(Assessed(candidate.scored({"case": 0.0 if failure else score}), failure))

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        match item.payload:
            case Compressed() as compressed:
                context.commit([shorten(compressed, self.memory)])
            case _:
                reflected = item.expect(Reflected)
                learning = learn(reflected.learned, self.memory, context)
                entered = Add(reflected.candidate, "confirmed" if reflected.failure is None else "rejected")
                context.commit([entered, *learning.changes])
                for emission in learning.emissions:
                    assert emission.payload == Compression()
                    yield emission


def _seeds(context: StageContext) -> list[Candidate]:
    return [each for update in context.pool.updates_between(0) for each in update.added() if each.operator == "seed"]
