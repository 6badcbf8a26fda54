"""Runs of CodeEvolve over programs that are one number, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import flowevolve as fe
from flowevolve._util.json_types import JSON
from flowevolve.algorithms.code_evolve import CodeEvolve, CodeEvolveConfig
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.model import ChatRequest
from flowevolve.core.pool import Candidate, Pool
from flowevolve.engine.report import RunReport
from tests.support.interruption import Fact, events_of, evolve
from tests.support.number_programs import Numbers, NumberTask, coder


def settings(**changes: Any) -> CodeEvolveConfig:
    """Three islands that migrate often."""
    known: dict[str, object] = {
        "islands": 3,
        "form": "whole",
        "start_programs": 2,
        "archive": {"name": "naive", "size": 12},
        "exploration": {"initial": 0.4, "least": 0.2, "most": 0.6},
        "migration": {"every": 4, "rate": 0.2},
    }
    return CodeEvolveConfig.model_validate(known | changes)


def algorithm(problem: Numbers | None = None, **changes: Any) -> CodeEvolve:
    return CodeEvolve(NumberTask(problem), settings(**changes))


def ran(
    evolved: CodeEvolve | None = None, before: Sequence[Fact] = (), **options: Any
) -> tuple[CodeEvolve, RunReport, list[Fact]]:
    evolved = evolved or algorithm()
    known: dict[str, Any] = {"budget": fe.Budget(evaluations=90), "max_in_flight": 6, "seed": 3}
    report, facts = evolve(evolved, before, roles=coder, **(known | options))
    return evolved, report, facts


def programs(pool: Pool, *statuses: str) -> list[Candidate]:
    wanted = statuses or ("confirmed", "rejected")
    return [each for name, each in pool.candidates() if name == "main" and pool.status(each.id) in wanted]


def selected(facts: Sequence[Fact]) -> list[Mapping[str, JSON]]:
    return [event.data for event in events_of(facts, "code_evolve.selected")]


def names(data: Mapping[str, JSON], key: str) -> list[str]:
    return cast("list[str]", data[key])


def asked(facts: Sequence[Fact]) -> list[tuple[str, str]]:
    """Role and prompt of every call."""
    calls = [fact for fact in facts if isinstance(fact, CallRecord)]
    return [(call.role, cast(ChatRequest, call.request).messages[-1].content) for call in calls]


def moved(facts: Sequence[Fact]) -> list[Event]:
    return events_of(facts, "code_evolve.migrated")
