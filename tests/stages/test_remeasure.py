"""The best candidate is measured again, where scores vary between repeats: its luck does not stay the mark to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

import flowevolve as fe
from flowevolve.algorithms.gepa import GEPA, GEPAConfig
from flowevolve.core.artifact import Artifact
from flowevolve.core.event_kinds import FlowClosed, PoolCommitted
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, LLMError, Message, RejectedError, ServerError, Usage
from flowevolve.core.pool import Add, Annotate, Candidate, Update
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.engine.contract import Mode
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.prompts.reading.fences import fence, labelled_blocks
from flowevolve.stages import Remeasuring
from flowevolve.stages.remeasure import FIRST, MOST, averaged, measurements
from tests.support.interruption import Echo, Fact, events_of, evolve

SIZE = 12
LUCKY = "- Be lucky."
BETTER = "- Be better."


class Graded(fe.Task):
    """Every example scores what the model answers."""

    name = "graded"
    data = Dataset(
        train=[Example(f"t{number}", {}) for number in range(6)],
        val=[Example(f"v{number}", {}) for number in range(SIZE)],
    )

    def seed(self) -> Artifact:
        return Artifact({"prompt": "You help."})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        asked = Message("user", f"{example.id}\n{artifact['prompt']}")
        value = float(await llm([asked]))
        return Rollout(example.id, "", Score(value, str(value), passed=False), (Call("prompt", {}, ""),))


class Grades(Echo):
    """A text with the lucky line gets 0.9 when an example of validation is first run with it, and then 0.1. Else it is
    0.5 for one with the better line, and 0.2.
    """

    def __init__(self, seen: set[str], *, vary: bool) -> None:
        self._vary = vary
        self._seen = seen

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        asked = request.messages[-1].content
        grade = 0.5 if BETTER in asked else 0.2
        if LUCKY in asked:
            grade = 0.1 if self._vary and asked in self._seen else 0.9
        self._seen.add(asked)
        return ChatReply(str(grade), Usage(100, 10))


class OutOfOrder(Grades):
    """Makes calls for these examples of validation fail whenever they are run again with the lucky line."""

    def __init__(self, failing: Sequence[str], error: LLMError) -> None:
        super().__init__(set(), vary=True)
        self._failing = [f"{name}\n" for name in failing]
        self._error = error

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        asked = request.messages[-1].content
        if LUCKY in asked and asked in self._seen and asked.startswith(tuple(self._failing)):
            raise self._error
        return await super().chat(request, timeout=timeout)


class LuckyFirst(Echo):
    """Reflects: first it adds the lucky line, and to a text that has it the better one in its place."""

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        lines = labelled_blocks(request.messages[0].content)[0][1].splitlines()
        added = LUCKY if len(lines) == 1 else BETTER
        return ChatReply(fence("\n".join([lines[0], added])), Usage(100, 10))


def run(
    mode: Mode = "stream",
    before: Sequence[Fact] = (),
    *,
    vary: bool = True,
    seen: set[str] | None = None,
    rollouts: int = 400,
    grades: Grades | None = None,
) -> tuple[GEPA, list[Fact]]:
    grades = grades or Grades(set() if seen is None else seen, vary=vary)

    def roles() -> Mapping[str, Role]:
        return {"task": Model(grades, "grades"), "reflection": Model(LuckyFirst(), "lucky first")}

    gepa = GEPA(Graded(), GEPAConfig(group=True, validation="improvement", remeasure=True, optimism=1.0))
    _, facts = evolve(gepa, before, roles=roles, budget=fe.Budget(rollouts=rollouts), mode=mode, max_in_flight=2)
    return gepa, facts


def repeats(facts: Sequence[Fact]) -> list[Event]:
    return [event for event in events_of(facts, "gepa.selected") if "again" in event.data]


def best_scores(facts: Sequence[Fact]) -> list[float]:
    commits = [fact.body for fact in facts if isinstance(fact, Event) and isinstance(fact.body, PoolCommitted)]
    return [commit.best_score for commit in commits if commit.best_score is not None]


def test_where_the_budget_has_no_room_for_another_validation_beside_it_nothing_is_run_again() -> None:
    _, facts = run(rollouts=108)
    assert len(repeats(facts)) == 1
    [done] = [event for event in events_of(facts, "item.done") if event.data["stage"] == "remeasure"]
    assert done.data["reason"] == "no room in the budget"
    assert not done.data["cost"]


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_what_was_only_lucky_gives_way_to_what_is_better(mode: Mode) -> None:
    gepa, facts = run(mode)
    best = gepa.best()
    assert best is not None
    assert BETTER in best.artifact["prompt"]
    assert max(best_scores(facts)) == pytest.approx(0.9)
    assert repeats(facts)
    lucky = next(each for each in gepa.archive.candidates if LUCKY in each.artifact["prompt"])
    runs = measurements(lucky)
    assert 1 < runs <= MOST
    assert lucky.mean_score == pytest.approx((0.9 + 0.1 * (runs - 1)) / runs)


@pytest.mark.parametrize("error", [ServerError("out of order", status=500), RejectedError("no", status=400)])
@pytest.mark.parametrize("failing", [["v1", "v11"], [f"v{number}" for number in range(FIRST)]])
def test_where_the_server_answers_no_repeat_the_score_stays_what_it_was(
    failing: Sequence[str], error: LLMError
) -> None:
    gepa, _ = run(grades=OutOfOrder(failing, error))
    lucky = next(each for each in gepa.archive.candidates if LUCKY in each.artifact["prompt"])
    kept = {name: score for name, score in lucky.scores.items() if name in failing}
    assert kept == dict.fromkeys(failing, pytest.approx(0.9))
    assert measurements(lucky) > 1
    assert all(score < 0.9 for name, score in lucky.scores.items() if name not in failing)


def test_answers_of_no_use_that_were_paid_for_are_the_candidates_own_and_count() -> None:
    empty = ServerError("the answer has no text", usage=Usage(90, 20))
    gepa, _ = run(grades=OutOfOrder(["v1", "v11"], empty))
    lucky = next(each for each in gepa.archive.candidates if LUCKY in each.artifact["prompt"])
    assert measurements(lucky) > 1
    assert all(score < 0.9 for score in lucky.scores.values())


def test_where_scores_do_not_vary_a_few_examples_are_run_again_once() -> None:
    gepa, facts = run(vary=False)
    assert len(repeats(facts)) == 1
    [spent] = [event for event in events_of(facts, "item.done") if event.data["stage"] == "remeasure"]
    cost = spent.data["cost"]
    assert isinstance(cost, Mapping)
    assert cost["rollouts"] == FIRST < SIZE
    assert spent.data["reason"] == "scores do not vary"
    assert {measurements(each) for each in gepa.archive.candidates} == {1}


def test_a_run_that_was_interrupted_goes_on_with_its_repeats() -> None:
    seen: set[str] = set()
    _, facts = run(seen=seen)
    begun = facts.index(repeats(facts)[0])
    for end in (begun + 1, begun + 5):
        gepa, combined = run(before=facts[:end], seen=seen)
        best = gepa.best()
        assert best is not None
        assert BETTER in best.artifact["prompt"]
        assert repeats(combined)[0] == repeats(facts)[0]


def scored(name: str, score: float) -> Candidate:
    return Candidate(name, Artifact({"p": name})).scored({"e0": score, "e1": score})


def test_scores_are_the_means_of_all_runs() -> None:
    candidate = scored("c", 0.6)
    change = averaged(candidate, {"e0": 0.0, "e1": 1.0})
    assert change.attributes == {"measurements": 2}
    assert change.scores == pytest.approx({"e0": 0.3, "e1": 0.8})
    again = averaged(
        Candidate("c", candidate.artifact, attributes={"measurements": 2}).scored({"e0": 0.3}), {"e0": 0.9}
    )
    assert again.scores == pytest.approx({"e0": 0.5})


def test_a_run_of_which_nothing_was_answered_is_none() -> None:
    change = averaged(scored("c", 0.6), {})
    assert change.attributes == {"measurements": 1}
    assert change.scores == {"e0": 0.6, "e1": 0.6}


def test_it_is_due_after_so_many_flows_that_brought_nothing_better_and_one_at_a_time() -> None:
    best = scored("c", 0.5)
    remeasuring = Remeasuring(lambda: best, every=2)
    remeasuring.apply(Update(1, (Add(best),), "0", 0.0))
    remeasuring.begin(0, again=False)
    assert remeasuring.due() is None
    remeasuring.begin(1, again=False)
    assert remeasuring.due() == best
    remeasuring.begin(2, again=True)
    assert remeasuring.due() is None
    remeasuring.apply(Update(2, (Annotate("c", {}, best.scores),), "2", 0.0))
    for flow in (3, 4):
        assert remeasuring.due() is None
        remeasuring.begin(flow, again=False)
    assert remeasuring.due() == best
    best = Candidate("c", best.artifact, attributes={"measurements": MOST}).scored(best.scores)
    assert remeasuring.due() is None


def test_a_repeat_that_came_to_nothing_is_the_last() -> None:
    best = scored("c", 0.5)
    remeasuring = Remeasuring(lambda: best, every=1)
    remeasuring.begin(0, again=True)
    remeasuring.apply_event(Event.of(0, 0.0, FlowClosed(0)))
    remeasuring.begin(1, again=False)
    assert remeasuring.due() is None
