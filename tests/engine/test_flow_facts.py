"""What the bound on open flows goes by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flowevolve.algorithms.gepa import GEPA, GEPAConfig
from flowevolve.core.budget import Budget, Cost
from flowevolve.core.graph import Graph
from flowevolve.engine.counters import RunCounters
from flowevolve.engine.flow_facts import flow_facts
from flowevolve.engine.ledger import Ledger
from flowevolve.tasks.catalog import house_style


def test_a_validation_costs_what_the_stages_take_that_a_group_goes_through() -> None:
    graph = GEPA(house_style(), GEPAConfig(group=True, validation="improvement", prune=True)).graph()
    counters = RunCounters(graph)
    for name, rollouts in (("prune", 6), ("evaluate", 60)):
        counters.stages[name].consumed, counters.stages[name].rollouts = 2, 2 * rollouts
    facts = flow_facts(graph, counters, Ledger(Budget()), Cost(rollouts=6), call_limit=8)
    assert facts.validation == Cost(rollouts=60)
    assert facts.validated == 2


def one_by_one() -> Graph:
    """GEPA's graph, whose edits are validated one at a time."""
    return replace(GEPA(house_style(), GEPAConfig()).graph(), validation="evaluate")


def counted(graph: Graph, **spent: tuple[int, int]) -> RunCounters:
    """Each stage up to the validation has ended two items, which took rollouts and tokens each."""
    counters = RunCounters(graph)
    for stage in graph.stages[: graph.positions["evaluate"] + 1]:
        rollouts, tokens = spent.get(stage.name, (0, 0))
        counts = counters.stages[stage.name]
        counts.consumed, counts.rollouts, counts.tokens = 2, 2 * rollouts, 2 * tokens
    return counters


def test_an_edit_costs_what_the_stages_before_its_validation_take() -> None:
    graph = one_by_one()
    counters = counted(graph, generate=(3, 30), propose=(0, 50), screen=(3, 20), evaluate=(40, 400), repair=(7, 70))
    facts = flow_facts(graph, counters, Ledger(Budget(tokens=2000)), Cost(rollouts=4), call_limit=8)
    assert (facts.edit, facts.validation) == (Cost(rollouts=6, tokens=100), Cost(rollouts=40, tokens=400))
    assert facts.affordable == 10, "a flow takes twice an edit"
    assert (facts.validated, facts.gathered, facts.call_limit, facts.room) == (2, 1, 8, None)
    assert flow_facts(graph, counters, Ledger(Budget(rollouts=60)), Cost(), call_limit=8).affordable == 5
    assert flow_facts(graph, counters, Ledger(Budget(proposals=7)), Cost(), call_limit=8).affordable == 7


def test_as_long_as_a_stage_has_ended_nothing_the_estimate_counts() -> None:
    graph = one_by_one()
    counters = counted(graph, generate=(3, 30))
    counters.stages["screen"].consumed = 0
    facts = flow_facts(graph, counters, Ledger(Budget(rollouts=60)), Cost(rollouts=20), call_limit=8, slots=50)
    assert (facts.edit, facts.affordable, facts.room) == (Cost(rollouts=20), 1.5, 2.5)
    assert flow_facts(graph, counters, Ledger(Budget()), Cost(), call_limit=8, slots=50).room == 50


@pytest.mark.parametrize("uncounted", ["generate", "evaluate"])
def test_where_some_rollouts_have_no_tokens_validations_are_counted_in_rollouts(uncounted: str) -> None:
    graph = one_by_one()
    spent = {"generate": (3, 30), "screen": (3, 20), "evaluate": (40, 400)}
    spent[uncounted] = (spent[uncounted][0], 0)
    facts = flow_facts(graph, counted(graph, **spent), Ledger(Budget()), Cost(), call_limit=8)
    assert facts.validation == Cost(rollouts=40)


def test_without_a_validation_nothing_is_weighed() -> None:
    graph = replace(one_by_one(), validation=None)
    facts = flow_facts(graph, counted(graph, evaluate=(40, 400)), Ledger(Budget()), Cost(), call_limit=8)
    assert (facts.edit, facts.validation, facts.validated, facts.affordable) == (Cost(), Cost(), 0, None)
