"""Mixed forms: what is asked for is drawn for each program, in every algorithm over programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
import pytest

import flowevolve as fe
from flowevolve._util.errors import InputError
from flowevolve.algorithms.baselines.algorithm import BestOfN, OnePlusLambda, SearchConfig
from flowevolve.algorithms.code_evolve import CodeEvolve
from flowevolve.algorithms.code_evolve.config import CodeEvolveConfig
from flowevolve.algorithms.context_evolve import ContextEvolve
from flowevolve.algorithms.context_evolve.config import ContextEvolveConfig
from flowevolve.algorithms.cse import CSE
from flowevolve.algorithms.cse.config import CSEConfig
from flowevolve.algorithms.levi import LEVI
from flowevolve.algorithms.levi.config import LEVIConfig
from flowevolve.core.calls import CallRecord
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.programs.edits import SEARCH_LINE
from flowevolve.prompts.programs import CHANGE_TITLES, CODE_TITLE, OTHERS_HEADING, PROGRAM_HEADING
from flowevolve.stages.forms import FormWeights
from tests.support.interruption import Fact, asked, events_of, evolve
from tests.support.number_programs import Coder, Numbers, NumberTask

WEIGHTS = {"edits": 0.4, "whole": 0.2, "cross": 0.2, "fix": 0.2}
Settings = Mapping[str, object]
HALF_WAY = 20.0
"""Virtual seconds."""
Beside = Callable[[Engine], Coroutine[Any, Any, None]]
MIXED: Settings = {"form": "mixed", "forms": WEIGHTS}
PLAIN: Settings = {"form": "edits"}


def baseline(kind: type[OnePlusLambda]) -> Callable[[NumberTask, Settings], fe.Algorithm]:
    return lambda task, settings: kind(task, SearchConfig.model_validate(settings))


def levi(task: NumberTask, settings: Settings) -> fe.Algorithm:
    few = {"seeds": 1, "variants": 2, "cells": 4, "advice_every": 0, "features": ["length"]}
    return LEVI(task, LEVIConfig.model_validate({**few, **settings}))


def code_evolve(task: NumberTask, settings: Settings) -> fe.Algorithm:
    few = {"islands": 2, "archive": {"name": "naive"}, "start_programs": 1}
    return CodeEvolve(task, CodeEvolveConfig.model_validate({**few, **settings}))


def context_evolve(task: NumberTask, settings: Settings) -> fe.Algorithm:
    alone = {"summarizer": False, "navigator": False, "sampler": False}
    return ContextEvolve(task, ContextEvolveConfig.model_validate({**alone, **settings}))


def cse(task: NumberTask, settings: Settings) -> fe.Algorithm:
    alone = {"planning": False, "plans": 1, "evolution": False, "local_memory": False}
    return CSE(task, CSEConfig.model_validate({**alone, **settings}))


ALGORITHMS: Mapping[str, Callable[[NumberTask, Settings], fe.Algorithm]] = {
    "best_of_n": baseline(BestOfN),
    "one_plus_lambda": baseline(OnePlusLambda),
    "levi": levi,
    "code_evolve": code_evolve,
    "context_evolve": context_evolve,
    "cse": cse,
}


def roles() -> Mapping[str, Role]:
    return {name: Model(Coder(), "coder") for name in ("code", "meta", "agent", "large", "small", "task")}


def search(
    name: str, settings: Settings, before: Sequence[Fact] = (), beside: Beside | None = None
) -> tuple[RunReport, list[Fact]]:
    algorithm = ALGORITHMS[name](NumberTask(Numbers(limit=1.3)), settings)
    return evolve(algorithm, before, roles=roles, budget=fe.Budget(proposals=60), max_in_flight=4, beside=beside)


def drawn(facts: Sequence[Fact]) -> list[Mapping[str, object]]:
    return [dict(event.data) for event in events_of(facts, "form.drawn")]


def prompts(facts: Sequence[Fact]) -> dict[str, str]:
    """The prompt for a program of each item."""
    calls = [fact for fact in facts if isinstance(fact, CallRecord)]
    said = {call.scope.item: asked(call)[0].content for call in calls}
    return {item: prompt for item, prompt in said.items() if prompt.startswith(CODE_TITLE)}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_each_form_is_asked_for_in_its_own_way(name: str) -> None:
    report, facts = search(name, MIXED)
    assert report.error is None
    by_item, kinds = prompts(facts), Counter(str(each["form"]) for each in drawn(facts))
    assert set(kinds) >= {"edits", "whole", "fix"} | ({"cross"} if name != "cse" else set())
    assert ("cross" in kinds) == (name != "cse")
    for each in drawn(facts):
        prompt, kind = by_item.get(str(each["item"])), each["form"]
        if prompt is None:  # the run ended before it was asked
            continue
        assert (SEARCH_LINE in prompt) == (kind in ("edits", "fix"))
        assert prompt.startswith(f"{CHANGE_TITLES['fix']}\n") == (kind == "fix")
        assert kind != "cross" or prompt.startswith(f"{CHANGE_TITLES['crossover']}\n")
        if kind == "fix":
            program = report.pool[str(each["program"])]
            assert program.artifact["program.py"] in prompt.partition(PROGRAM_HEADING)[2]
            assert "error: no number below the limit" in prompt
            assert OTHERS_HEADING not in prompt
        if kind == "cross":
            program = report.pool[str(each["program"])]
            first = prompt.partition(f"{OTHERS_HEADING}\n### Program 1")[2].partition("### Program 2")[0]
            assert program.artifact["program.py"] in first


@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_was_mended_and_what_was_crossed_are_parents(name: str) -> None:
    report, facts = search(name, MIXED)
    program_of = {each["item"]: each.get("program") for each in drawn(facts)}
    for event in events_of(facts, "candidate.proposed"):
        attributes, parents = event.data["attributes"], event.data["parents"]
        assert isinstance(attributes, dict)
        assert isinstance(parents, list)
        if event.data["operator"] == "migrate":  # a copy of a program, with its attributes
            continue
        if attributes.get("form") == "fix":
            assert parents == [program_of[event.data["item"]]]
            assert report.pool.status(str(parents[0])) == "rejected"
        if attributes.get("form") == "cross":
            assert program_of[event.data["item"]] in parents
            assert len(parents) == 2


@pytest.mark.parametrize("name", ALGORITHMS)
def test_equal_seeds_draw_the_same_and_a_run_that_goes_on_draws_nothing_again(name: str) -> None:
    _, whole = search(name, MIXED)
    _, again = search(name, MIXED)
    assert drawn(whole) == drawn(again)
    report, facts = search(name, MIXED, whole[: len(whole) // 2])
    assert report.error is None
    items = [each["item"] for each in drawn(facts)]
    assert len(items) == len(set(items))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_without_it_nothing_is_drawn(name: str) -> None:
    _, facts = search(name, PLAIN)
    assert drawn(facts) == []
    assert not any(prompt.startswith(CHANGE_TITLES["fix"]) for prompt in prompts(facts).values())
    assert not any("'form'" in str(event.data["attributes"]) for event in events_of(facts, "candidate.proposed"))


def test_a_weight_of_nothing_is_never_drawn() -> None:
    _, facts = search("one_plus_lambda", {"form": "mixed", "forms": {"edits": 0, "whole": 1, "cross": 0, "fix": 0}})
    assert {each["form"] for each in drawn(facts)} == {"whole"}
    with pytest.raises(InputError, match="one of them has to be above 0"):
        FormWeights(edits=0, whole=0)


@pytest.mark.parametrize("name", ["best_of_n", "one_plus_lambda"])
def test_what_was_vetoed_is_neither_crossed_nor_mended(name: str) -> None:
    async def veto_old(engine: Engine) -> None:
        await anyio.sleep(HALF_WAY)
        for _, candidate in list(engine.pool.candidates()):
            with suppress(InputError):  # it is all that the run can go on from
                await engine.act(fe.Veto(candidate.id), "ada")

    _, facts = search(name, MIXED, beside=veto_old)
    vetoes = [event for event in events_of(facts, "run.steered") if event.data["refused"] is None]
    assert vetoes
    vetoed = {str(event.data["act"]["candidate"]) for event in vetoes}  # type: ignore[index, call-overload]
    later = [event.data["program"] for event in events_of(facts, "form.drawn") if event.time > vetoes[-1].time]
    assert later
    assert not vetoed & set(later)


def test_a_parent_that_failed_is_mended() -> None:
    settings = {**MIXED, "failed_parents": True}
    report, facts = search("context_evolve", settings)
    parents = {event.data["item"]: event.data["parent"] for event in events_of(facts, "context_evolve.selected")}
    mended = [
        each for each in drawn(facts) if report.pool.status(str(parents[str(each["item"]).split(".")[0]])) == "rejected"
    ]
    assert mended
    assert {each["form"] for each in mended} == {"fix"}
