"""How stale an item is when a stage takes it, and what the staleness policy decides about it."""

from __future__ import annotations

from typing import get_args

from flowevolve._util.errors import EngineError, policy_error
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.graph import AnyStage, Graph
from flowevolve.core.item import Item, Stale, Ticket, carried
from flowevolve.core.policies import Decision, Staleness, StalenessPolicy
from flowevolve.engine.contract import gap_of
from flowevolve.engine.flows import Flows
from flowevolve.engine.services import EngineServices

DECISIONS: tuple[Decision, ...] = get_args(Decision)


class StalenessCheck:
    """Counts the changes that items have missed, and asks the policy about items that missed any."""

    def __init__(
        self, algorithm: Algorithm, graph: Graph, flows: Flows, services: EngineServices, policy: StalenessPolicy
    ) -> None:
        self._algorithm = algorithm
        self._graph = graph
        self._flows = flows
        self._services = services
        self._policy = policy

    def gap(self, item: Item[object]) -> int:
        """How many changes of the pool the item has missed, as the algorithm counts them."""
        payload = item.payload
        if isinstance(payload, Ticket):
            return self._services.pool.version - item.version
        return gap_of(self._algorithm, payload.item if isinstance(payload, Stale) else item, self._services.pool)

    def decide(self, stage: AnyStage, item: Item[object]) -> Decision | None:
        """The staleness policy's decision on an item; None if the item can't be stale and the policy is not asked.

        Raises:
            EngineError: if the policy raises an error, or decides anything else than it may.
        """
        if (
            item.id in self._services.interrupted_work
            or stage.name == self._graph.repair
            or isinstance(item.payload, Ticket)
        ):
            return None
        if self._flows.is_ageless(item):
            return None
        gap = self.gap(item)
        about = [candidate.id for candidate in carried(item)]
        revoked = self._services.pool.descends_from_revoked((*item.derives, *about))
        if gap == 0 and not revoked:
            return None
        if stage.commits and stage.repair_to is None and about:
            return "continue"  # its candidate was evaluated and paid for, so its result is never too late
        repairable = (
            stage.repair_to is not None
            and self._graph.repair is not None
            # without a parent there is no edit that could be judged
            and all(each.parents and self._services.pool.keeps(each.parents[0]) for each in carried(item))
        )
        facts = Staleness(stage.name, gap, revoked, repairable, item, self._services.pool)
        try:
            decision = self._policy.decide(facts)
        except Exception as error:
            raise policy_error("staleness", self._policy, error) from error
        if decision not in DECISIONS:
            raise EngineError(
                f"staleness policy {type(self._policy).__name__} decided {decision!r:.80} on an item at stage "
                f"{stage.name!r}; it may decide {', '.join(map(repr, DECISIONS))}"
            )
        if decision == "repair" and not repairable:
            raise EngineError(
                f"staleness policy {type(self._policy).__name__} wants to repair an item at stage {stage.name!r}, "
                "where that is not possible; it may do so only if facts.repairable is true"
            )
        return decision
