"""Runs of CSE over programs of parts, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import flowevolve as fe
from flowevolve._util.json_types import JSON
from flowevolve.algorithms.cse import CSE, CSEConfig
from flowevolve.core.calls import CallRecord
from flowevolve.core.model import ChatRequest
from flowevolve.core.pool import Add, Candidate, Pool
from flowevolve.engine.report import RunReport
from tests.support.interruption import Fact, events_of, evolve
from tests.support.part_programs import Agents, Parts, PartsTask, roles

Ran = tuple[CSE, RunReport, list[Fact]]


def algorithm(problem: Parts | None = None, **settings: Any) -> CSE:
    return CSE(PartsTask(problem), CSEConfig.model_validate(settings))


def ran(evolved: CSE | None = None, before: Sequence[Fact] = (), agents: Agents | None = None, **options: Any) -> Ran:
    evolved = evolved or algorithm()
    known: dict[str, Any] = {"budget": fe.Budget(evaluations=31), "max_in_flight": 6, "seed": 3}
    report, facts = evolve(evolved, before, roles=lambda: roles(agents), **(known | options))
    return evolved, report, facts


def evaluated(pool: Pool) -> list[Candidate]:
    """All programs that were evaluated, in the order of their commits."""
    updates = pool.updates_between(0)
    return [change.candidate for update in updates for change in update.changes if isinstance(change, Add)]


def selected(facts: Sequence[Fact]) -> list[Mapping[str, JSON]]:
    return [event.data for event in events_of(facts, "cse.selected")]


def asked(facts: Sequence[Fact], stage: str | None = None) -> list[str]:
    """The prompts of all calls, or those of one stage."""
    calls = [fact for fact in facts if isinstance(fact, CallRecord) and stage in (None, fact.scope.stage)]
    return [cast(ChatRequest, call.request).messages[-1].content for call in calls]


def titles(facts: Sequence[Fact]) -> set[str]:
    return {prompt.partition("\n")[0] for prompt in asked(facts)}
