"""Assessing programs: all cases, level by level, and what candidates know of it afterwards; an interrupted assessment."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

import pytest

import flowevolve as fe
from flowevolve.core.artifact import Artifact
from flowevolve.core.graph import NO_EMISSIONS
from flowevolve.core.pool import Candidate
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Score
from flowevolve.stages import Assess, Level, Rollouts, committing
from flowevolve.stages.payloads import Assessed, Written
from tests.support.interruption import Fact, events_of, evolve


class Table:
    """A task whose scores stand in the artifact's texts, by case; what is no number fails."""

    name = "table"
    measured = True
    worst = -100.0

    def __init__(self, scores: Mapping[str, str]) -> None:
        self._scores = scores
        rows = tuple(Example(case, {}) for case in scores)
        self.data = Dataset(rows, rows)
        self.ran: list[str] = []

    def seed(self) -> Artifact:
        return Artifact(self._scores, kind="program")

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        self.ran.append(example.id)
        try:
            value = float(artifact[example.id])
        except ValueError:
            if artifact[example.id] == "raise":
                raise
            return Rollout(example.id, "", Score(self.worst, "no good", passed=False, failure=artifact[example.id]))
        return Rollout(example.id, "", Score(value, f"got {value:g}", passed=False, metrics={"seconds": 2 * value}))


class Once(fe.Algorithm):
    """Assesses the seed."""

    name = "once"

    def __init__(self, task: Table, levels: Sequence[Level] | Callable[[], Sequence[Level]] = ()) -> None:
        self._task = task
        self._levels = levels
        self.assessed: list[Assessed] = []

    def graph(self) -> fe.Graph:
        stages = (
            fe.Stage("select", self._none, ("assess",)),
            fe.Stage("assess", Assess(Rollouts(self._task), self._task, self._levels), ("update",)),
            committing("update", self._update),
        )
        return fe.Graph(stages, entry="select")

    async def init(self, context: fe.UpdateContext) -> AsyncGenerator[fe.Emit]:
        yield fe.Emit(Written(context.propose(self._task.seed(), parents=[], operator="seed")), to="assess")

    async def _none(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        for emission in NO_EMISSIONS:
            yield emission
        raise fe.Exhausted

    async def _update(self, item: fe.Item[object], context: fe.UpdateContext) -> None:
        self.assessed.append(item.expect(Assessed))
        context.commit([fe.Add(self.assessed[-1].candidate)])

    def best(self) -> Candidate | None:
        return self.assessed[-1].candidate if self.assessed else None


def assess(
    scores: Mapping[str, str], levels: Sequence[Level] | Callable[[], Sequence[Level]] = ()
) -> tuple[Assessed, Table, list[Fact]]:
    task = Table(scores)
    algorithm = Once(task, levels)
    report, facts = evolve(algorithm)
    assert report.error is None
    assert report.spent.evaluations == 1
    assert report.spent.rollouts == len(task.ran)
    return algorithm.assessed[0], task, facts


def test_a_program_that_works_has_all_scores_what_was_said_and_mean_metrics() -> None:
    assessed, _, facts = assess({"a": "1", "b": "3"})
    candidate = assessed.candidate
    assert assessed.failure is None
    assert dict(candidate.scores) == {"a": 1.0, "b": 3.0}
    assert candidate.attributes == {
        "feedback": "a (1): got 1\nb (3): got 3",
        "failure": None,
        "metrics": {"seconds": 4.0},
    }
    (event,) = events_of(facts, "candidate.assessed")
    assert event.data["score"] == 2.0


def test_of_one_case_its_feedback_is_the_programs() -> None:
    assessed, _, _ = assess({"a": "1"})
    assert assessed.candidate.attributes["feedback"] == "got 1"


@pytest.mark.parametrize(
    ("text", "failure"), [("timeout", "timeout"), ("raise", "the task failed with ValueError: could not convert")]
)
def test_a_case_that_fails_counts_worst_and_comes_first(text: str, failure: str) -> None:
    assessed, _, _ = assess({"a": "1", "b": text})
    assert dict(assessed.candidate.scores) == {"a": 1.0, "b": -100.0}
    assert assessed.failure is not None
    assert assessed.failure.startswith(failure)
    assert assessed.failure.endswith("(1 of 2 cases failed; this is case b)")
    assert str(assessed.candidate.attributes["feedback"]).startswith("b (-100): ")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_score_that_nothing_can_be_ranked_beside_is_a_failure(value: str) -> None:
    assessed, _, facts = assess({"a": "1", "b": value}, [Level(("b",), -100.0)])
    assert dict(assessed.candidate.scores) == {"a": 1.0, "b": -100.0}
    assert assessed.failure == f"its score is {value} (1 of 2 cases failed; this is case b)"
    (event,) = events_of(facts, "candidate.assessed")
    assert event.data["score"] == -49.5


def test_a_level_that_is_not_passed_ends_it() -> None:
    levels = [Level(("b",), -1.5), Level(("b", "a"), -1.5)]
    assessed, task, _ = assess({"a": "-3", "b": "-1", "c": "0"}, levels)
    assert task.ran == ["b", "a"]
    assert dict(assessed.candidate.scores) == {"a": -3.0, "b": -1.0, "c": -100.0}
    assert assessed.failure == "cascade: -2 on 2 cases, which takes -1.5"


def test_levels_that_are_passed_change_nothing_and_no_case_runs_twice() -> None:
    assessed, task, _ = assess({"a": "-3", "b": "-1", "c": "0"}, lambda: [Level(("b",), -1.0)])
    assert task.ran == ["b", "a", "c"]
    assert assessed.failure is None


def test_after_an_interruption_no_case_that_had_ended_runs_again() -> None:
    scores = {"a": "1", "b": "2", "c": "3"}
    _, _, facts = assess(scores)
    kept = [number for number, fact in enumerate(facts) if fact in events_of(facts, "rollout.kept")]
    assert len(kept) == 3
    task = Table(scores)
    algorithm = Once(task)
    report, _ = evolve(algorithm, facts[: kept[1] + 1])
    assert report.error is None
    assert len(task.ran) == 1
    assert dict(algorithm.assessed[0].candidate.scores) == {"a": 1.0, "b": 2.0, "c": 3.0}
