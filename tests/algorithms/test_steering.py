"""Whole runs of algorithms that somebody comments on, and out of which somebody takes the best candidate."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve._util.errors import InputError
from flowevolve._util.tasks import Pulse
from flowevolve.core.event_kinds import CandidateProposed, FlowOpened, PoolCommitted, RunSteered
from flowevolve.core.item_ids import flow_of
from tests.support.depth import LONG
from tests.support.odd_runs import SETTINGS, SOURCE, Ran, evolve, instructions

REMARK = "Mind the polar bears."
ALGORITHMS = list(SETTINGS) if LONG else ["gepa", "ace", "cse"]
PROGRAM_ALGORITHMS = ["levi", "best_of_n", "one_plus_lambda", "code_evolve", "context_evolve", "cse"]


def steered(name: str, folder: Path) -> Ran:
    """A run in which everything is commented on, and then the best candidate vetoed."""
    woken = Pulse()

    async def act(engine: fe.Engine) -> None:
        examples = instructions(folder).data.train if name in ("gepa", "combee", "ace") else []
        for each in examples:
            await engine.act(fe.Comment(REMARK, example=each.id), "ada")
        if name == "ace":  # of so short a run, the second playbook is the last
            return
        enough = 10 if name == "code_evolve" else 2  # on an island there are fewer
        while len([*engine.pool.snapshot().candidates()]) < enough or engine.best is None:
            await woken.wait()
        for candidate in [*engine.pool.snapshot().candidates()]:
            await engine.act(fe.Comment(REMARK, candidate=candidate.id), "ada")
        await engine.act(fe.Veto(engine.best.id), "ada")

    return evolve(name, None, pytest.MonkeyPatch(), folder, side_task=act, watch=lambda event: woken.fire())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_comments_are_read_and_a_vetoed_candidate_is_neither_best_nor_parent(name: str, tmp_path: Path) -> None:
    ran = steered(name, tmp_path)
    shown = "\n".join(each.content for request in ran.asked for each in request.messages)
    assert REMARK in shown
    if name == "gepa":
        assert f"A person who has looked at this example says:\n{REMARK}" in shown
        assert f"A person who has looked at the text that is used here says:\n{REMARK}" in shown
    if name == "ace":
        return
    acts = [event for event in ran.events if isinstance(event.body, RunSteered) and isinstance(event.body.act, fe.Veto)]
    (act,) = acts
    assert isinstance(act.body, RunSteered)
    assert isinstance(act.body.act, fe.Veto)
    assert act.body.refused is None
    banned = act.body.act.candidate
    later = [event.body for event in ran.events if event.seq > act.seq]
    opened = min(body.flow for body in later if isinstance(body, FlowOpened))
    assert banned not in [body.best for body in later if isinstance(body, PoolCommitted)]
    assert ran.result.best is not None
    assert ran.result.best.id != banned
    assert banned not in [each.id for each in ran.result.frontier]
    proposed = [body for body in later if isinstance(body, CandidateProposed) and flow_of(body.item) >= opened]
    assert not [body.candidate for body in proposed if banned in body.parents]


@pytest.mark.parametrize("name", PROGRAM_ALGORITHMS)
def test_what_is_injected_takes_no_proposal_that_open_work_needs(name: str, tmp_path: Path) -> None:
    said: list[str] = []

    async def inject(engine: fe.Engine) -> None:
        while not said:
            try:
                await engine.inject(fe.Artifact({"program.py": SOURCE}, kind="program"))
            except InputError as error:
                said.append(str(error))

    ran = evolve(name, None, pytest.MonkeyPatch(), tmp_path, {"proposals": 6}, side_task=inject)
    assert ran.result.proposals == 6
    assert "budget.proposals is spent" in said[0]
