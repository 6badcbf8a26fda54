"""How many flows are open at a time: a `flowevolve.core.policies.FlowBound`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf

from flowevolve._util.errors import InputError
from flowevolve.core.policies import Aim, FlowFacts, FlowLimit
from flowevolve.policies.opening import CALLS, SHARE, is_opening


@dataclass(frozen=True, slots=True)
class FixedFlows:
    """Always the same number of flows.

    Raises:
        InputError: if ``flows`` is below 1.
    """

    flows: int

    def __post_init__(self) -> None:
        if self.flows < 1:
            raise InputError(f"algorithm.max_in_flight is {self.flows}, but has to be at least 1")

    def limit(self, facts: FlowFacts, current: FlowLimit | None) -> FlowLimit:
        return FlowLimit(self.flows, "as configured")


_NONE_REJECTED = "no recent validation has rejected a candidate"
LEAST_USEFUL = 0.7
"""If validations are cheap, more than one flow is worth it only if more than this share of edits is not overtaken."""


@dataclass(frozen=True, slots=True)
class AutoFlows:
    """As many flows as there is use for, and ``most`` if nothing indicates how many that are.

    If edits are validated together, there is use for about as many flows as one validation costs edits: with more,
    edits wait for each other and are made from outdated parents; with fewer, the server waits. ``scale`` multiplies
    that number, and in the opening of a run it is halved. Besides, what is left of the budget has to pay for ``rounds``
    times as many flows, because a chain of improvements is no longer than the number of flows that can follow one
    another; and there are at most two flows for each call that the server takes at a time. In the opening there is at
    most one flow per four of these calls, and one per two once the first group is validated.

    A cheap validation loses little if it rejects its candidate. So there are ``eager`` flows divided by the cost of a
    validation in edits, at most ``most``, times the share of recent validations that accepted, if that is more than the
    number above; in the opening, half of them.

    With ``narrows``, there are fewer flows the more of the recent edits were overtaken by another edit.

    If rollouts run on machines, only their capacity indicates how many flows there is use for: then ``most`` is twice
    that capacity, if that is more, so that half of the flows write programs while the others run them.

    A limit is kept until the wanted one is at least a quarter higher or lower.
    """

    most: int = 16
    rounds: float = 4.0
    scale: float = 1.0
    narrows: bool = False
    eager: float = 0.0

    def limit(self, facts: FlowFacts, current: FlowLimit | None) -> FlowLimit:
        wanted = min(self._bounds(facts), key=lambda each: each.flows)
        if wanted.flows < facts.gathered:
            wanted = FlowLimit(facts.gathered, f"a stage waits until it has {facts.gathered} items")
        if current is not None and 0.75 * current.flows < wanted.flows < 1.25 * current.flows:
            return current
        return wanted

    def _bounds(self, facts: FlowFacts) -> list[FlowLimit]:
        bounds = [self._most(facts.room)]
        price = facts.validation.tokens or facts.validation.rollouts
        edit = facts.edit.tokens if facts.validation.tokens else facts.edit.rollouts
        if price and edit:
            ratio = price / edit
            by_price, eager = self._by_price(ratio, facts), self._eager(ratio, facts)
            bounds = [by_price if by_price.flows >= eager.flows else eager]
        if facts.affordable is not None:
            flows = max(1, round(facts.affordable / self.rounds))
            rest = f"what was left of the budget paid for about {facts.affordable:.0f} more, in {self.rounds:g} rounds"
            bounds.append(FlowLimit(flows, rest))
        bounds.append(_by_server(facts))
        return bounds

    def _by_price(self, ratio: float, facts: FlowFacts) -> FlowLimit:
        useful = 1 - facts.overtaken if self.narrows else 1.0
        least = 2 if useful > LEAST_USEFUL else 1
        flows = round(self.scale * ratio * _share(facts) * useful**2)
        vain = f"; {facts.overtaken:.0%} of the recent edits were overtaken by others" if useful < 1 else ""
        reason = f"a validation costs as much as {ratio:.1f} edits{_opening(facts)}{vain}"
        return FlowLimit(max(least, min(2 * self.most, flows)), reason)

    def _eager(self, ratio: float, facts: FlowFacts) -> FlowLimit:
        flows = min(self.most, self.eager / ratio) * facts.accepted * _share(facts)
        accepted = _NONE_REJECTED
        if facts.accepted < 1:
            accepted = f"{facts.accepted:.0%} of recent validations accepted their candidate"
        cheap = f"and one costs only as much as {ratio:.1f} edits"
        return FlowLimit(round(flows), f"{accepted}, {cheap}{_opening(facts)}")

    def _most(self, room: float | None) -> FlowLimit:
        wanted = 0 if room is None else ceil(2 * room)
        if wanted > self.most:
            return FlowLimit(wanted, f"the machines run the programs of {room:.3g} flows at a time")
        return FlowLimit(self.most, "this many are open while it is not known what edits and validations cost")


AIMS: Mapping[Aim, AutoFlows] = {
    "score": AutoFlows(scale=0.5),
    "balanced": AutoFlows(eager=36),
    "time": AutoFlows(scale=2.0, eager=inf),
}
"""What decides how many flows are open, for each value of ``algorithm.aim``."""


def _share(facts: FlowFacts) -> float:
    return SHARE if is_opening(facts.validated) else 1.0


def _opening(facts: FlowFacts) -> str:
    return "; in the opening of the run, half as many flows are open" if is_opening(facts.validated) else ""


def _by_server(facts: FlowFacts) -> FlowLimit:
    taken = f"the server takes {_calls(facts.call_limit)} at a time"
    if facts.validated and is_opening(facts.validated):
        return FlowLimit(
            max(1, facts.call_limit * facts.validated // CALLS),
            f"{taken}, and in the opening of the run only a part of this is used",
        )
    return FlowLimit(2 * facts.call_limit, taken)


def _calls(count: int) -> str:
    return "one call" if count == 1 else f"{count} calls"
