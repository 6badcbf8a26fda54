"""Outcomes reach the models whose calls made a candidate, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, Usage
from flowevolve.llm.client.ensemble import Arm, Ensemble
from flowevolve.llm.client.model import Model
from flowevolve.policies.bandits import UCB
from flowevolve.runner.attribution import Attribution
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.worlds.rules.world import RulesWorld
from tests.support.some_events import some_changes, some_event


def head(number: int, model: str, role: str = "reflection") -> CallRecord:
    scope = CallScope("propose", f"{number}.0", None, 0, 0)
    return CallRecord(role, scope, ChatRequest(model, ()), ChatReply("", Usage(10, 1)), None, 1, 0, 0, 0)


def test_a_bandit_goes_on_as_if_it_had_not_been_interrupted() -> None:
    backend = SimBackend(RulesWorld(), PROFILES["instant"])

    def models() -> Ensemble:
        return Ensemble([Model(backend, "a"), Model(backend, "b")], [1, 1], UCB())

    def drawn(ensemble: Ensemble, attribution: Attribution, numbers: range) -> list[CallRecord | Event]:
        """Calls, with their ends: those of model a are confirmed."""
        facts: list[CallRecord | Event] = []
        for number in numbers:
            model = ensemble.draw(0, CallScope("propose", str(number), None, 0, 0)).name
            record, name = head(number, model), f"c{number}"
            status = "confirmed" if model == "a" else "rejected"
            events = [
                some_event(0, "candidate.proposed", candidate=name, item=f"{number}.0"),
                some_event(0, "item.done", item=f"{number}.0"),
                some_event(0, "pool.commit", changes=some_changes(add=name, status=status)),
            ]
            attribution.call(replace(record, reply=ChatReply("", Usage(10, 1), dollars=0.5)))
            for event in events:
                attribution.event(event)
            facts += [record, *events]
        return facts

    whole, again = models(), models()
    attribution, resumed = Attribution({"reflection": whole}), Attribution({"reflection": again})
    resumed.restore(drawn(whole, attribution, range(100)), lambda model, usage: 0.5)
    assert drawn(again, resumed, range(100, 200)) == drawn(whole, attribution, range(100, 200))


class Rig:
    def __init__(self) -> None:
        backend = SimBackend(RulesWorld(), PROFILES["instant"])
        self.ensemble = Ensemble([Model(backend, "a"), Model(backend, "b")], [1, 1], self)
        self.attribution = Attribution({"reflection": self.ensemble, "task": Model(backend, "t")})
        self.arms: list[Arm] = []

    def choose(self, arms: Sequence[Arm], draw: float) -> int:
        self.arms = list(arms)
        return 0

    def known(self) -> list[tuple[int, float]]:
        """Outcomes and gain of each model."""
        self.ensemble.draw(0, CallScope("x", "x", None, 0, 0))
        return [(arm.judged, arm.gain) for arm in self.arms]

    def call(self, item: str, model: str, role: str = "reflection", dollars: float | None = None) -> None:
        scope = CallScope("propose", item, None, 0, 0)
        reply = ChatReply("fine", dollars=dollars)
        self.attribution.call(CallRecord(role, scope, ChatRequest(model, ()), reply, None, 1, 0, 0, 0))

    def event(self, kind: str, **data: JSON) -> None:
        self.attribution.event(some_event(0, kind, **data))

    def proposed(self, candidate: str, item: str) -> None:
        self.event("candidate.proposed", candidate=candidate, item=item)

    def commit(self, **change: JSON) -> None:
        self.event("pool.commit", changes=some_changes(**change))


def test_a_confirmed_candidate_is_a_gain_for_the_calls_of_the_item_that_proposed_it() -> None:
    rig = Rig()
    rig.call("3.0/prompt", "a")
    rig.call("3.0/style", "b")
    rig.call("3.0/style", "b")
    rig.call("4.0", "b")
    rig.proposed("c3", "3.0")
    rig.event("item.done", item="3.0")
    assert rig.known() == [(0, 0.0), (0, 0.0)]
    rig.commit(add="c3", status="confirmed")
    assert rig.known() == [(1, 1.0), (2, 2.0)]
    assert rig.attribution.accepted == {"a": 1, "b": 1}


@pytest.mark.parametrize("end", [{"add": "c1", "status": "rejected"}, {"move": "c1", "status": "revoked"}])
def test_a_candidate_that_comes_to_nothing_is_none(end: dict[str, JSON]) -> None:
    rig = Rig()
    for candidate in ("c1", "c2"):
        rig.call(candidate[1:], "a")
        rig.proposed(candidate, candidate[1:])
    rig.commit(add="c1", status="speculative")
    assert rig.known()[0] == (0, 0.0)
    rig.commit(**end)
    rig.event("candidate.rejected", candidate="c2", item="7", reason="stale")
    assert rig.known() == [(2, 0.0), (0, 0.0)]
    assert rig.attribution.accepted == {}


def test_an_item_that_ends_without_a_proposal_gained_nothing() -> None:
    rig = Rig()
    rig.call("3.0/prompt", "b")
    rig.event("item.done", item="3.0")
    rig.event("item.done", item="3.0")
    assert rig.known() == [(0, 0.0), (1, 0.0)]


def test_a_speculative_candidate_counts_when_it_is_confirmed() -> None:
    rig = Rig()
    rig.call("1", "b")
    rig.proposed("c1", "1")
    rig.commit(add="c1", status="speculative")
    rig.commit(move="c1", status="confirmed")
    rig.commit(annotate="c1", attributes={})
    assert rig.known() == [(0, 0.0), (1, 1.0)]


def test_calls_after_a_proposal_have_no_part_in_it() -> None:
    rig = Rig()
    rig.call("1", "a")
    rig.proposed("c1", "1")
    rig.call("1", "b")
    rig.commit(add="c1", status="confirmed")
    assert rig.attribution.accepted == {"a": 1}


def test_roles_of_one_model_are_counted_and_costs_are_passed_on() -> None:
    rig = Rig()
    rig.call("1", "t", role="task", dollars=0.5)
    rig.call("1", "a", dollars=0.25)
    rig.call("1", "a", dollars=None)
    rig.proposed("c1", "1")
    rig.commit(add="c1", status="confirmed")
    rig.known()
    assert [(arm.paid, arm.dollars) for arm in rig.arms] == [(1, 0.25), (0, 0.0)]
    assert rig.attribution.accepted == {"t": 1, "a": 1}
