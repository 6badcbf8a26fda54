"""Runs of ContextEvolve over programs that are one number, with agents that answer by simple rules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import anyio

import flowevolve as fe
from flowevolve._util.json_types import JSON
from flowevolve.algorithms.context_evolve import ContextEvolve, ContextEvolveConfig
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, EmbedReply, EmbedRequest, RejectedError, Usage
from flowevolve.core.pool import Candidate, Pool
from flowevolve.engine.report import RunReport
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.prompts.abstracts import EXEMPLARS_TITLE, NAVIGATE_TITLE, SUMMARIZE_TITLE
from tests.support.interruption import Fact, evolve
from tests.support.number_programs import Coder, Numbers, NumberTask

_NUMBER = re.compile(r"value = (-?[\d.]+)")
_OFFERED = re.compile(r"^### Program (\S+)$", re.MULTILINE)


@dataclass
class Agents:
    """Describes a program by its number, points to the trajectories it was shown, and chooses the last two programs.

    ``unreadable`` and ``refused`` are the shares of its replies that can't be read, and of its calls that fail.
    """

    unreadable: float = 0.0
    refused: float = 0.0
    seconds: float = 2.0
    backend = "agents"

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        await anyio.sleep(self.seconds)
        prompt = request.messages[-1].content
        random = Random(f"{request.seed} {prompt}")
        if random.random() < self.refused:
            raise RejectedError("too long")
        text = "I would rather not." if random.random() < self.unreadable else json.dumps(_answer(prompt))
        return ChatReply(text, Usage(50, 5))

    async def embed(self, request: EmbedRequest, *, timeout: float | None) -> EmbedReply:
        raise NotImplementedError

    async def models(self) -> tuple[str, ...]:
        return ("agents",)

    async def aclose(self) -> None:
        pass


def _answer(prompt: str) -> Mapping[str, object]:
    if prompt.startswith(SUMMARIZE_TITLE):
        number = _NUMBER.findall(prompt)[-1]
        return {"abstract": f"It is about {number}.", "inherited": ["one number"], "new": [f"the number {number}"]}
    if prompt.startswith(NAVIGATE_TITLE):
        return {"guidance": f"Heed {prompt.count(' -> ')} steps."}
    assert prompt.startswith(EXEMPLARS_TITLE)
    return {"chosen": [{"id": name, "why": f"as {name} is near"} for name in _OFFERED.findall(prompt)[-2:]]}


def algorithm(problem: Numbers | None = None, **changes: Any) -> ContextEvolve:
    settings = ContextEvolveConfig.model_validate({"form": "whole", **changes})
    return ContextEvolve(NumberTask(problem), settings)


def ran(
    evolved: ContextEvolve | None = None,
    before: Sequence[Fact] = (),
    agents: Agents | None = None,
    **options: Any,
) -> tuple[ContextEvolve, RunReport, list[Fact]]:
    evolved = evolved or algorithm()

    def roles() -> Mapping[str, Role]:
        return {"code": Model(Coder(), "coder"), "agent": Model(agents or Agents(), "agents")}

    known: dict[str, Any] = {"budget": fe.Budget(evaluations=60), "max_in_flight": 6, "seed": 3}
    report, facts = evolve(evolved, before, roles=roles, **(known | options))
    return evolved, report, facts


def programs(pool: Pool, *statuses: str) -> list[Candidate]:
    wanted = statuses or ("confirmed", "rejected")
    return [each for name, each in pool.candidates() if name == "main" and pool.status(each.id) in wanted]


def asked(facts: Sequence[Fact], title: str) -> list[str]:
    """The prompts with this title."""
    calls = [cast(ChatRequest, fact.request) for fact in facts if isinstance(fact, CallRecord)]
    prompts = [call.messages[-1].content for call in calls]
    return [prompt for prompt in prompts if prompt.startswith(title)]


def said(facts: Sequence[Fact], kind: str) -> list[Mapping[str, JSON]]:
    """What events of this kind say."""
    return [fact.data for fact in facts if isinstance(fact, Event) and fact.kind == kind]
