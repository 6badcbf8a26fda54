"""The facts that policies receive: costs and what is left of the budget for a bound on open flows, and what waits and
is on its way for the departure of a group.
"""

from __future__ import annotations

from flowevolve.core.budget import Cost
from flowevolve.core.graph import AnyStage, Graph
from flowevolve.core.policies import FlowFacts, Waiting
from flowevolve.engine.counters import RunCounters
from flowevolve.engine.flows import Flows
from flowevolve.engine.ledger import Ledger


def flow_facts(
    graph: Graph,
    counters: RunCounters,
    ledger: Ledger,
    estimate: Cost,
    call_limit: int,
    slots: int | None = None,
) -> FlowFacts:
    """Collect the facts. ``estimate`` is the algorithm's estimate of what one flow spends. ``slots`` is how many
    rollouts run at a time on the machines that they need; None if they need none.
    """
    edit = validation = Cost()
    in_tokens = all(stage.tokens for stage in counters.stages.values() if stage.rollouts)
    if graph.validation is not None:
        place = graph.positions[graph.validation]
        passed = {graph.validation}
        for stage in graph.stages[place:]:
            if stage.name in passed:  # pruning, for example, has a stage of its own before the validating one
                passed.update(stage.to)
                validation += counters.price(stage.name)
        edit = _edit(graph, counters, place) or Cost(rollouts=estimate.rollouts)
    flow = Cost(proposals=1, rollouts=max(estimate.rollouts, 2 * edit.rollouts), tokens=2 * edit.tokens)
    return FlowFacts(
        edit=edit,
        validation=validation if edit.tokens and in_tokens else Cost(rollouts=validation.rollouts),
        affordable=ledger.affords(flow),
        call_limit=call_limit,
        gathered=max(stage.gather for stage in graph.stages if stage.departs is None),
        validated=_validated(graph, counters),
        room=None if slots is None else slots / max(1, estimate.rollouts),
        overtaken=counters.overtaken,
        accepted=counters.accepted_share,
    )


def waiting(graph: Graph, flows: Flows, counters: RunCounters, stage: AnyStage, items: int) -> Waiting:
    """Collect the facts on the ``items`` items that wait at a gathering stage."""
    place = graph.positions[stage.name]
    return Waiting(
        items,
        upstream=flows.count_at({each.name for each in graph.stages[:place]}),
        downstream=flows.count_at({each.name for each in graph.stages[place:]}) - items,
        spent=counters.since_departure(stage.name),
        price=counters.price(stage.to[0]),
        validated=counters.stages[stage.to[0]].ended,
    )


def _validated(graph: Graph, counters: RunCounters) -> int:
    """How many validations have ended. Groups are validated at the stage after the one that forms them."""
    if graph.validation is None:
        return 0
    stage = graph.stage(graph.validation)
    return counters.stages[stage.to[0] if stage.gathers else stage.name].ended


def _edit(graph: Graph, counters: RunCounters, place: int) -> Cost | None:
    """What a flow spends before the stage at this position, on average; None until an item has ended at each earlier
    stage.

    The repair stage does not count, because few flows pass through it.
    """
    spent = Cost()
    for stage in graph.stages[:place]:
        if stage.name == graph.repair:
            continue
        if not counters.stages[stage.name].ended:
            return None
        spent += counters.price(stage.name)
    return spent
