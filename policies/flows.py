"""How many flows are open at a time: a `flowevolve.core.policies.FlowBound`."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from flowevolve._util.errors import InputError
from flowevolve.core.policies import FlowFacts, FlowLimit
from flowevolve.policies.opening import CALLS, SHARE, is_opening


@dataclass(frozen=True, slots=True)
class FixedFlows:
    """Always so many.

    Raises:
        InputError: if it is below 1.
    """

    flows: int

    def __post_init__(self) -> None:
        if self.flows < 1:
            raise InputError(f"algorithm.max_in_flight: is {self.flows}; give at least 1")

    def limit(self, facts: FlowFacts, current: FlowLimit | None) -> FlowLimit:
        return FlowLimit(self.flows, "as configured")


LEAST_USEFUL = 0.7
"""The share of edits that may not be overtaken, for more than one flow to be worth it where a validation is cheap."""


@dataclass(frozen=True, slots=True)
class AutoFlows:
    """As many as there is use for, and ``most`` where nothing says how many that are.

    Where edits are validated together, there is use for about as many as one validation costs: with more, edits wait
    for each other and are made from parents that are out of date; with fewer, the server waits. ``scale`` multiplies
    that number, and in the opening of a run it is halved. Beyond that, what is left of the budget has to pay for
    ``rounds`` flows one after the other, as a chain of improvements is no longer than that, and no more than two flows
    wait for each call that the server takes. In the opening there is one flow for each four calls that it takes, and
    for each two once the first group is validated.

    With ``narrows`` there are the fewer the more edits of late came to nothing because another was there first.

    Where rollouts run on machines, nothing else says how many flows there is use for than what these take: ``most`` is
    then twice that, if that is more, so that half of the flows are written while the others run.

    A limit is kept until another would be a quarter higher or lower.
    """

    most: int = 16
    rounds: float = 4.0
    scale: float = 1.0
    narrows: bool = False

    def limit(self, facts: FlowFacts, current: FlowLimit | None) -> FlowLimit:
        wanted = min(self._bounds(facts), key=lambda each: each.flows)
        if wanted.flows < facts.gathered:
            wanted = FlowLimit(facts.gathered, f"a stage waits for {facts.gathered} items")
        if current is not None and 0.75 * current.flows < wanted.flows < 1.25 * current.flows:
            return current
        return wanted

    def _bounds(self, facts: FlowFacts) -> list[FlowLimit]:
        bounds = [self._most(facts.room)]
        price = facts.validation.tokens or facts.validation.rollouts
        edit = facts.edit.tokens if facts.validation.tokens else facts.edit.rollouts
        if price and edit:
            ratio = price / edit
            opening = is_opening(facts.validated)
            useful = 1 - facts.overtaken if self.narrows else 1.0
            least = 2 if useful > LEAST_USEFUL else 1
            flows = round(self.scale * ratio * (SHARE if opening else 1.0) * useful**2)
            flows = max(least, min(2 * self.most, flows))
            half = "; in the opening half as many" if opening else ""
            vain = f"; of late {facts.overtaken:.0%} of the edits were overtaken" if useful < 1 else ""
            bounds = [FlowLimit(flows, f"a validation costs as much as {ratio:.1f} edits{half}{vain}")]
        if facts.affordable is not None:
            flows = max(1, round(facts.affordable / self.rounds))
            bounds.append(FlowLimit(flows, f"the budget then paid for about {facts.affordable:.0f} more flows"))
        bounds.append(_by_server(facts))
        return bounds

    def _most(self, room: float | None) -> FlowLimit:
        wanted = 0 if room is None else ceil(2 * room)
        if wanted > self.most:
            return FlowLimit(wanted, f"the machines run the programs of {room:.3g} flows at a time")
        return FlowLimit(self.most, f"no more than {self.most} where nothing else is known")


def _by_server(facts: FlowFacts) -> FlowLimit:
    taken = f"the server takes {facts.call_limit} calls at a time"
    if facts.validated and is_opening(facts.validated):
        return FlowLimit(
            max(1, facts.call_limit * facts.validated // CALLS), f"{taken}, of which few are used in the opening"
        )
    return FlowLimit(2 * facts.call_limit, taken)
