"""What the bound on open flows goes by."""

from __future__ import annotations

from flowevolve.algorithms.gepa import GEPA, GEPAConfig
from flowevolve.core.budget import Budget, Cost, Ledger
from flowevolve.engine.counters import RunCounters
from flowevolve.engine.flow_facts import flow_facts
from flowevolve.tasks.catalog import house_style


def test_a_validation_costs_what_the_stages_take_that_a_group_goes_through() -> None:
    graph = GEPA(house_style(), GEPAConfig(group=True, validation="improvement", prune=True)).graph()
    counters = RunCounters(graph)
    for name, rollouts in (("prune", 6), ("evaluate", 60)):
        counters.stages[name].consumed, counters.stages[name].rollouts = 2, 2 * rollouts
    facts = flow_facts(graph, counters, Ledger(Budget()), Cost(rollouts=6), call_limit=8)
    assert facts.validation == Cost(rollouts=60)
    assert facts.validated == 2
