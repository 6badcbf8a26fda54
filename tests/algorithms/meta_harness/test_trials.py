"""Harnesses that are tried before they are proposed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from flowevolve.core.calls import CallRecord
from flowevolve.core.model import ChatRequest
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.sim.worlds.harness import world
from flowevolve.tasks.labelling import BASELINES
from tests.algorithms.meta_harness.test_meta_harness import config, gone_on, interrupted, rows
from tests.support.interruption import Fact, events_of

__all__ = ["rows"]

BROKEN = "class Memory:\n    pass\n"


def tries(source: str, times: int) -> object:
    """A coder that has this harness tried so often, and then writes."""

    def code(messages: int, rng: random.Random) -> str:
        if messages < 2 * times:
            return f'{{"tool": "try", "set": "symptoms"}}\n\n```python\n{source}```'
        return f"```python\n{world.write_harness(rng)}```"

    return code


def told(facts: Sequence[Fact]) -> list[str]:
    """What the coders were told, at the end of their chats."""
    chats = [fact.request for fact in facts if isinstance(fact, CallRecord) and fact.role == "proposer"]
    return [chat.messages[-1].content for chat in chats if isinstance(chat, ChatRequest) and len(chat.messages) > 1]


def test_a_harness_is_tried_on_examples_that_it_does_not_learn_from(
    rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "_code", tries(BASELINES["few_shot"], 1))
    result, facts = interrupted(config(rows, budget={"proposals": 3}))
    assert result.report.error is None
    assert told(facts)
    assert all(text.startswith("Accuracy ") and " on 4 texts of symptoms, with " in text for text in told(facts))
    trials = events_of(facts, "harness.tried")
    assert trials
    assert result.report.spent.rollouts >= 4 * (len(BASELINES) + len(trials))


def test_what_can_not_be_run_is_told_of(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_code", tries(BROKEN, 1))
    _, facts = interrupted(config(rows, budget={"proposals": 3}))
    assert told(facts)
    assert all(text.startswith("The harness can't be used: ") for text in told(facts))


def test_a_harness_that_the_limit_of_tokens_cuts_off_is_not_proposed_but_told_of(
    rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = BASELINES["zero_shot"]
    long = f"{whole}\n" + "# and so on\n" * 1000

    monkeypatch.setattr(world, "_code", lambda messages, rng: f"```python\n{whole if messages > 1 else long}```")
    roles = {"roles": {"proposer": {"max_tokens": 2000}}}
    result, facts = interrupted(config(rows, llm=roles, budget={"proposals": 3}))
    assert result.report.error is None
    assert set(told(facts)) == {"Your reply breaks off, as it reached the limit of tokens: write less."}
    written = [each for each in result.report.pool.snapshot().candidates() if each.operator == "write"]
    assert {each.artifact["harness"] for each in written} == {whole}


def test_there_are_so_many_trials_and_no_more(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_code", tries(BASELINES["zero_shot"], 4))
    algorithm = {"name": "meta_harness", "run_seconds": 2, "max_in_flight": 1}
    _, facts = interrupted(config(rows, algorithm=algorithm, budget={"proposals": 3}))
    assert [text.split()[0] for text in told(facts)[:4]] == ["Accuracy", "Accuracy", "You", "You"]


def test_a_trial_never_exceeds_the_budget(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_code", tries(BASELINES["zero_shot"], 1))
    result, _ = interrupted(config(rows, budget={"rollouts": 40}))
    assert not result.report.overshoot
    assert result.report.spent.rollouts <= 40


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_after_an_interruption_no_trial_is_run_again(rows: Path, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    monkeypatch.setattr(world, "_code", tries(BASELINES["few_shot"], 1))
    _, facts = interrupted(config(rows))
    combined = facts[: int(share * len(facts))]
    result = gone_on(make_plan(config(rows), ProvidedObjects()), combined)
    assert result.report.error is None
    ran = [(event.data["item"], event.data["key"]) for event in events_of(combined, "harness.ran")]
    assert any("try" in str(key) for _, key in ran)
    assert len(ran) == len(set(ran))
