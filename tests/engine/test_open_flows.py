"""Open flows: their numbers, what lives in them, and what they hold of the budget."""

from __future__ import annotations

import pytest

from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Budget, Cost
from flowevolve.core.item import Item, Ticket
from flowevolve.core.item_ids import child_id
from flowevolve.core.pool import Candidate
from flowevolve.engine.flows import Flows
from flowevolve.engine.ledger import Ledger
from flowevolve.stages.payloads import Proposed

CANDIDATE = Candidate("c1", Artifact({"prompt": "be good"}))
SIX = Cost(tokens=6)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(Budget(tokens=10))


def open_one(flows: Flows, *, trigger: str | None = None, ageless: bool = False) -> Item[Ticket]:
    return flows.open("select", Ticket(trigger, 0), SIX, version=3, now=2.0, ageless=ageless)


def child(item: Item[object], number: int) -> Item[object]:
    return Item(child_id(item.id, number), item.flow, Proposed(CANDIDATE, (), None), 3, (), 2.0)


def test_a_flow_lives_as_long_as_its_last_item(ledger: Ledger) -> None:
    flows = Flows(ledger)
    ticket = open_one(flows)
    first, second = child(ticket, 0), child(ticket, 1)
    for item in (first, second):
        flows.enter("write", item)
    assert (len(flows), flows.items, flows.opened) == (1, 3, 1)
    assert [flows.count_at({"select"}), flows.count_at({"write"}), flows.count_at({"select", "write"})] == [1, 2, 3]
    assert not flows.leave(ticket)
    assert not flows.leave(first)
    assert flows.carries("c1"), "the other item is about it, too"
    assert ledger.refusal(SIX) == "tokens"
    assert flows.leave(second)
    assert not flows.carries("c1")
    assert (len(flows), flows.items) == (0, 0)
    assert ledger.refusal(SIX) is None


def test_flows_are_numbered_on(ledger: Ledger) -> None:
    flows = Flows(ledger)
    assert [open_one(flows).id, open_one(flows).id] == ["0", "1"]
    flows.number_from(7)
    flows.number_from(5)
    assert (open_one(flows).flow, flows.opened) == (7, 8)


@pytest.mark.parametrize(("trigger", "ageless"), [(None, False), ("shift", False), (None, True)])
def test_what_a_flow_is_it_is_until_it_ends(ledger: Ledger, trigger: str | None, ageless: bool) -> None:
    flows = Flows(ledger)
    ticket = open_one(flows, trigger=trigger, ageless=ageless)
    assert (flows.is_triggered(ticket.flow), flows.is_ageless(ticket)) == (trigger is not None, ageless)
    flows.leave(ticket)
    assert (flows.is_triggered(ticket.flow), flows.is_ageless(ticket)) == (False, False)


@pytest.mark.parametrize(("ageless", "refused"), [(False, "tokens"), (True, None)])
def test_what_a_flow_took_says_something_of_those_like_it(ledger: Ledger, ageless: bool, refused: str | None) -> None:
    flows = Flows(ledger)
    first = open_one(flows, ageless=ageless)
    ledger.charge(first.flow, SIX)
    flows.leave(first)
    flows.restore(1, ageless=False, triggered=False, estimate=Cost(tokens=1))
    assert ledger.refusal(Cost(tokens=1)) == refused


def test_what_a_flow_had_spent_comes_out_of_its_estimate(ledger: Ledger) -> None:
    flows = Flows(ledger)
    flows.restore(4, ageless=False, triggered=True, estimate=SIX, spent=Cost(tokens=2))
    assert flows.is_triggered(4)
    assert ledger.refusal(SIX) is None
    assert ledger.refusal(Cost(tokens=7)) == "tokens"


def test_who_is_given_up_holds_nothing(ledger: Ledger) -> None:
    flows = Flows(ledger)
    ticket = open_one(flows)
    flows.enter("write", item := child(ticket, 0))
    assert flows.abandon() == [("select", ticket), ("write", item)]
    assert (len(flows), flows.items, flows.carries("c1")) == (0, 0, False)
    assert ledger.refusal(Cost(tokens=10)) is None
