"""With as many metric calls as gepa the drop-in comes as far, though its iterations run side by side."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from gepa.api import optimize as gepas_optimize
from gepa.core.adapter import EvaluationBatch

import flowevolve.compat.gepa as compat
from tests.support.gepa_dummies import Silent

CALLS = 300
NEEDED = [f"word{number}" for number in range(20)]
LEVELS = 6
FENCED = re.compile(r"```\n(.*?)```", re.DOTALL)


class Words:
    """An example is a word that the prompt needs; the feedback names it where it is missing."""

    propose_new_texts = None

    def __init__(self) -> None:
        self.calls = 0
        self.prompts: list[str] = []

    def score(self, prompt: str, word: str) -> float:
        return float(word in prompt.split())

    def evaluate(self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        self.calls += len(batch)
        scores = [self.score(candidate["prompt"], word) for word in batch]
        traces = [f"missing {word}" if score < 1 else "fine" for word, score in zip(batch, scores, strict=True)]
        return EvaluationBatch(list(batch), scores, traces)

    def make_reflective_dataset(self, candidate: dict[str, str], batch: Any, components: list[str]) -> Any:
        return {name: [{"Feedback": trace} for trace in batch.trajectories] for name in components}

    def reflect(self, prompt: Any) -> str:
        """It knows nothing of merging: shown no feedback, it gives back the text that it is shown first."""
        self.prompts.append(prompt)
        (text, *_), missing = FENCED.findall(prompt), re.findall(r"missing (\S+)", prompt)
        return f"```\n{text.strip()} {missing[0] if missing else ''}\n```"


class Levels(Words):
    """Every reflection goes one level up, whatever the feedback, so that those made side by side come to the same."""

    def score(self, prompt: str, word: str) -> float:
        return min(1.0, prompt.count("!") / LEVELS)

    def reflect(self, prompt: Any) -> str:
        return f"```\n{FENCED.findall(prompt)[0].strip()}!\n```"


class OwnLevels(Levels):
    def propose_new_texts(self, candidate: dict[str, str], *_: Any) -> dict[str, str]:  # type: ignore[override]
        return {"prompt": candidate["prompt"] + "!"}


@pytest.mark.parametrize("world", [Words, Levels, OwnLevels])
def test_a_model_that_can_not_merge_costs_no_score(world: type[Words]) -> None:
    theirs, ours = world(), world()
    given: dict[str, Any] = {"trainset": NEEDED, "valset": NEEDED, "max_metric_calls": CALLS, "logger": Silent()}
    best: list[float] = []
    for run, adapter in ((gepas_optimize, theirs), (_side_by_side, ours)):
        model = None if world is OwnLevels else adapter.reflect
        result: Any = run({"prompt": "Do it."}, adapter=cast(Any, adapter), reflection_lm=model, **given)
        best.append(result.val_aggregate_scores[result.best_idx])
    assert best[1] >= best[0] > 0.5
    assert ours.calls <= CALLS


def _side_by_side(*arguments: Any, **named: Any) -> Any:
    return compat.optimize(*arguments, **named, adapter_concurrency=8)
