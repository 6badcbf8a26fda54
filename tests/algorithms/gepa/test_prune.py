"""Pruning: lines that came along with better ones and do harm are taken out of the best candidate again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

import flowevolve as fe
from flowevolve.algorithms.gepa import GEPA, GEPAConfig, prune
from flowevolve.algorithms.gepa.prune import Passage, Pruning, passages, split, without
from flowevolve.core.artifact import Artifact
from flowevolve.core.event_kinds import CandidateProposed, CandidateRejected, FlowClosed
from flowevolve.core.events import Event
from flowevolve.core.item_ids import ItemId
from flowevolve.core.model import ChatReply, ChatRequest, Usage
from flowevolve.core.pool import Annotate, Candidate, Update
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.engine.contract import Mode
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.prompts.reading.fences import fence, labelled_blocks
from tests.support.interruption import Echo, Fact, events_of, evolve

SEED = "You help.\nMind the harm that is here from the start."
RULES = ("- Be kind.", "- Be short.")


class Lines(fe.Task):
    """A text scores for each rule that it states, and loses for each line about harm. No model is asked."""

    name = "lines"
    data = Dataset(
        train=[Example(f"t{number}", {}) for number in range(6)], val=[Example(f"v{number}", {}) for number in range(6)]
    )

    def seed(self) -> Artifact:
        return Artifact({"prompt": SEED})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        text = artifact["prompt"]
        value = 0.2 + 0.3 * sum(rule in text for rule in RULES) - 0.1 * text.count("harm")
        score = Score(value, f"{value}", passed=False)
        return Rollout(example.id, "", score, (Call("prompt", {}, ""),))


class AddsHarm(Echo):
    """Reflects once on each rule that is missing: adds it, and a harmful line with it. After that nothing helps."""

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        text = labelled_blocks(request.messages[0].content)[0][1]
        missing = next((rule for rule in RULES if rule not in text), None)
        added = ["- This does nothing."] if missing is None else [missing, f"- More harm, like {missing[-6:-1]}."]
        return ChatReply(fence("\n".join([text, *added])), Usage(100, 10))


def roles() -> Mapping[str, Role]:
    return {"task": Model(Echo(), "echo"), "reflection": Model(AddsHarm(), "adds harm")}


def run(mode: Mode = "stream", before: Sequence[Fact] = ()) -> tuple[Candidate, list[Fact]]:
    """The best candidate, and all events and calls."""
    gepa = GEPA(Lines(), GEPAConfig(group=True, validation="improvement", prune=True))
    _, facts = evolve(gepa, before, roles=roles, budget=fe.Budget(proposals=40), mode=mode, max_in_flight=3)
    best = gepa.best()
    assert best is not None
    return best, facts


def attempts(facts: Sequence[Fact]) -> list[str]:
    """What was taken out each time, as JSON says it."""
    return [str(removed) for event in events_of(facts, "gepa.selected") if (removed := event.data.get("removed"))]


def lines(candidate: Candidate) -> list[str]:
    return sorted(candidate.artifact["prompt"].splitlines())


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_harmful_lines_are_taken_out_again_and_those_that_help_stay(mode: Mode) -> None:
    best, facts = run(mode)
    assert lines(best) == sorted([*SEED.splitlines(), *RULES])
    pruned = [event for event in events_of(facts, "candidate.proposed") if event.data["operator"] == "prune"]
    tried = attempts(facts)
    assert any(event.data["candidate"] == best.id for event in pruned)
    assert len(tried) == len(pruned)
    assert not any(line in removed for removed in tried for line in SEED.splitlines())


def test_what_fails_together_is_tried_by_halves_and_nothing_twice() -> None:
    _, facts = run("sync")
    tried = attempts(facts)
    sizes = {removed.count("prompt") for removed in tried}
    assert 1 in sizes
    assert max(sizes) > 1
    assert len(set(tried)) == len(tried)


def test_an_attempt_that_another_candidate_overtook_is_made_again() -> None:
    _, facts = run()
    tried = attempts(facts)
    assert len(set(tried)) < len(tried)


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_run_that_was_interrupted_goes_on_pruning_where_it_was(mode: Mode) -> None:
    _, facts = run(mode)
    begun = [place for place, fact in enumerate(facts) if isinstance(fact, Event) and "removed" in fact.data]
    for end in (begun[0] + 1, begun[1] + 4):
        best, combined = run(mode, facts[:end])
        tried = attempts(combined)
        assert lines(best) == sorted([*SEED.splitlines(), *RULES])
        assert tried[: len(attempts(facts[:end]))] == attempts(facts[:end])


def texts(removed: Sequence[Passage]) -> list[str]:
    return [passage.text for passage in removed]


def test_what_is_left_of_a_half_is_tried_when_the_rest_of_it_is_gone() -> None:
    best = Candidate("c1", Artifact({"prompt": "a\nb\nc\nd\ne"}), (), "reflect", 0)
    pruning = Pruning(Artifact({"prompt": "a"}), lambda: best, every=1)
    pruning.begin(0, ())
    assert texts(pruning.due()) == ["e", "d", "c", "b"]
    pruning.begin(1, pruning.due())
    pruning.apply_event(Event.of(0, 0.0, FlowClosed(1)))
    pruning.begin(2, ())
    assert texts(pruning.due()) == ["e", "d"]
    best = Candidate("c2", Artifact({"prompt": "a\nb\nd"}), ("c1",), "reflect", 1)
    assert texts(pruning.due()) == ["d", "b"]


def fail(pruning: Pruning, flow: int) -> list[str]:
    """Take out what is due; it was no better so."""
    removed = pruning.due()
    pruning.begin(flow, removed)
    pruning.apply_event(Event.of(0, 0.0, FlowClosed(flow)))
    return texts(removed)


def test_the_first_attempt_waits_longest() -> None:
    best = Candidate("c1", Artifact({"prompt": "a\nb\nc"}), (), "reflect", 0)
    pruning = Pruning(Artifact({"prompt": "a"}), lambda: best, every=6)
    due = [fail(pruning, flow) for flow in range(12)]
    assert [flow for flow, removed in enumerate(due) if removed] == [6, 9]


@pytest.mark.parametrize("vary", [False, True])
def test_what_failed_is_tried_again_where_scores_vary(vary: bool) -> None:
    best = Candidate("c1", Artifact({"prompt": "a\nb\nc"}), (), "reflect", 0)
    pruning = Pruning(Artifact({"prompt": "a"}), lambda: best, every=1)
    if vary:
        pruning.apply(Update(1, (Annotate("c1", {"measurements": 2}, {"e": 0.5}),), "0", 0.0))
    pruning.begin(0, ())
    tried = [fail(pruning, flow) for flow in range(1, 11)]
    once = [["c", "b"], [], ["c"], [], ["b"], []]
    assert tried == [*once, *([["c", "b"], [], ["c"], []] if vary else [[], [], [], []])]


def test_lines_that_more_proposals_wrote_are_tried_later_also_where_reflections_are_aggregated() -> None:
    best = Candidate("c3", Artifact({"prompt": "a\nb\nc"}), ("c0",), "aggregate", 0)
    pruning = Pruning(Artifact({"prompt": "a"}), lambda: best, every=1)
    first = Candidate("c0", Artifact({"prompt": "a"}), (), "seed", 0)
    for candidate in (first, *(replace(best, id=name, artifact=Artifact({"prompt": "a\nc"})) for name in "pq"), best):
        pruning.apply_event(Event.of(0, 0.0, CandidateProposed.of(candidate, ItemId("0"))))
    pruning.begin(0, ())
    assert texts(pruning.due()) == ["b"]


@pytest.mark.parametrize("rejected", [False, True])
def test_of_what_was_written_long_ago_only_what_is_in_a_candidate_is_remembered(
    rejected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a run would take more memory with every proposal that is turned down."""
    monkeypatch.setattr(prune, "MOST_PASSAGES", 100)
    best = Candidate("c3", Artifact({"prompt": "a\nb\nc"}), ("c0",), "reflect", 0)
    pruning = Pruning(Artifact({"prompt": "a"}), lambda: best, every=1)

    def propose(name: str, text: str, *, operator: str = "reflect", stays: bool = False) -> None:
        candidate = replace(best, id=name, artifact=Artifact({"prompt": text}), operator=operator)
        pruning.apply_event(Event.of(0, 0.0, CandidateProposed.of(candidate, ItemId("0"))))
        if not stays:
            pruning.apply_event(Event.of(0, 0.0, CandidateRejected(name, ItemId("0"), "screen")))

    propose("c0", "a", operator="seed", stays=True)
    propose("c1", "a\nc", stays=not rejected)
    propose("c2", "a\nc")
    for number in range(20):
        propose(f"d{number}", "\n".join(f"{number} {line}" for line in range(10)))
    propose("c3", "a\nb\nc", stays=True)
    pruning.begin(0, ())
    assert texts(pruning.due()) == (["c", "b"] if rejected else ["b"])


def test_passages_are_lines_with_what_hangs_on_them() -> None:
    text = "Title\n\n- one\n  and more\n- two\n```\n- code\n\nx\n```\nlast\n"
    assert split(text) == ["Title", "", "- one\n  and more", "- two", "```\n- code\n\nx\n```", "last", ""]
    assert "\n".join(split(text)) == text
    artifact = Artifact({"a": text, "b": "- two"})
    assert without(artifact, [Passage("a", "- two")])["a"] == text.replace("- two\n", "")
    assert without(artifact, [Passage("a", "- two")])["b"] == "- two"
    assert [each.text for each in passages({"b": "x\n\nx\ny"})] == ["x", "y"]


def test_unchanged_indentation_and_open_fences_stay_whole() -> None:
    text = "  indented first\nthen\n```\nnever closed\n\nstill in it"
    assert "\n".join(split(text)) == text
    assert re.search("never closed\n\nstill", split(text)[-1])
