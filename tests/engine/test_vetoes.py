"""Candidates that somebody vetoes, approves or edits while a run goes on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

import flowevolve as fe
from flowevolve._util.errors import InputError
from flowevolve.core.context import StageContext
from flowevolve.core.graph import NO_EMISSIONS, Discard, Emit
from flowevolve.core.item import Item, Ticket
from flowevolve.engine.engine import Engine
from tests.support.climbing import Climbing, Plan, climb, steered
from tests.support.interruption import events_of, evolve


def test_what_was_vetoed_and_then_turned_down_by_a_stage_goes_on_when_it_is_approved() -> None:
    plan: Plan = [(5.5, fe.Veto("c3")), (6.5, fe.Approve("c3"))]
    report, facts = climb(*plan, max_in_flight=1)
    assert [refused for _, _, refused in steered(facts)] == [None, None]
    (approved,) = (each for _, each in report.pool.candidates() if each.attributes == {"approved": "c3"})
    assert report.pool.status("c3") == "rejected"
    assert report.pool.status(approved.id) == "confirmed"


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_vetoed_candidate_is_no_parent_and_not_the_best_until_that_is_taken_back(mode: str) -> None:
    width: dict[str, Any] = {"max_in_flight": 1, "mode": mode}
    plan: Plan = [(5.0, fe.Veto("c2")), (9.0, fe.Approve("c2")), (9.5, fe.Veto("c1"))]
    report, facts = climb(*plan, **width)
    parents = {str(e.data["candidate"]): e.data["parents"] for e in events_of(facts, "candidate.proposed")}
    assert parents["c2"] == ["c1"]
    assert parents["c3"] == ["c2"]  # which was on its way, and stays
    vetoed = [e for e in events_of(facts, "pool.commit") if e.data["item"] == "-1"]
    assert [(e.time, e.data["best"]) for e in vetoed] == [(5.0, "c1"), (9.0, "c2"), (9.5, "c2")]
    assert report.pool.vetoed("c1")
    assert not report.pool.vetoed("c2")
    assert report.pool.status("c1") == "confirmed"
    assert "c1" not in {each.id for each in report.pool.snapshot().candidates()}


def test_a_candidate_that_is_vetoed_on_its_way_is_out_when_it_comes() -> None:
    report, facts = climb((1.5, fe.Veto("c1")), max_in_flight=1)
    assert report.pool.status("c1") == "confirmed"
    (came,) = [e for e in events_of(facts, "pool.commit") if e.data["item"] == "1.0"]
    assert came.data["best"] == "c0"
    assert report.pool["c2"].parents == ("c0",)


def test_what_a_stage_has_turned_down_is_judged_once_it_is_approved() -> None:
    report, facts = climb((8.5, fe.Approve("c3")), max_in_flight=1)
    assert report.pool.status("c3") == "rejected"
    (event,) = [e for e in events_of(facts, "candidate.proposed") if e.data["operator"] == "injected"]
    assert event.data["attributes"] == {"approved": "c3"}
    approved = report.pool[str(event.data["candidate"])]
    (before,) = [e for e in events_of(facts, "candidate.proposed") if e.data["candidate"] == "c3"]
    assert approved.artifact.components == before.data["components"]
    assert approved.parents == tuple(before.data["parents"] or ())  # type: ignore[arg-type]
    assert report.pool.status(approved.id) == "confirmed"


class Drafting(Climbing):
    """Makes its first child from a draft of its own. Nothing comes of either."""

    async def _make(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.expect(Ticket).ordinal:
            async for emission in super()._make(item, context):
                yield emission
            return
        seed = context.pool["c0"]
        draft = context.propose(fe.Artifact({"a": "draft"}), parents=[seed], operator="w")
        context.propose(fe.Artifact({"a": "draft, shorter"}), parents=[seed, draft], operator="w")
        raise Discard("not better")


def test_what_is_approved_goes_on_from_those_of_its_parents_that_the_pool_has_kept() -> None:
    report, facts = climb((1.0, fe.Approve("c1-2")), algorithm=Drafting(), max_in_flight=1)
    assert [refused for _, _, refused in steered(facts)] == [None]
    assert report.pool.status("c1") == "rejected"
    (approved,) = (each for _, each in report.pool.candidates() if each.attributes == {"approved": "c1-2"})
    assert approved.artifact["a"] == "draft, shorter"
    assert approved.parents == ("c0",)
    assert report.pool.status(approved.id) == "confirmed"


def test_what_is_vetoed_already_can_not_be_vetoed_again() -> None:
    async def veto(engine: Engine) -> None:
        await anyio.sleep(4.5)
        await engine.act(fe.Veto("c1"), "ada")
        with pytest.raises(InputError, match=r"^veto: c1 is vetoed already$"):
            await engine.act(fe.Veto("c1"), "bob")

    report, facts = evolve(Climbing(), beside=veto, budget=fe.Budget(proposals=20), max_in_flight=1)
    assert report.pool.vetoed("c1")
    assert [by for by, _, refused in steered(facts) if refused is not None] == ["bob"]


def test_the_only_candidate_can_not_be_vetoed() -> None:
    _, facts = climb((1.0, fe.Veto("c0")), max_in_flight=1)
    assert [why for _, _, why in steered(facts)] == [
        "veto: c0 is all that the run can go on from; inject another candidate first"
    ]


class Selecting(Climbing):
    """Selects at its end, which takes less than half a second."""

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(0.4)
        for emission in NO_EMISSIONS:
            yield emission


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_run_that_was_cut_off_takes_no_veto_while_it_is_finished(mode: str) -> None:
    plan: Plan = [(5.5, fe.Stop()), (6.2, fe.Veto("c1"))]
    report, facts = climb(*plan, algorithm=Selecting(), max_in_flight=1, mode=mode, drain_seconds=0.5)
    past = "veto: the run is ending, and its candidates no longer change; resume it, or branch from another one"
    assert [refused for _, _, refused in steered(facts)] == [None, past]
    assert not report.pool.vetoed("c1")
