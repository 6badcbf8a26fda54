"""A deterministic adapter without an LLM, for running gepa's own optimize and ours side by side."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from gepa.core.adapter import EvaluationBatch

import flowevolve.compat.gepa as compat

Call = tuple[tuple[str, ...], tuple[tuple[str, str], ...], bool]

TRAIN = [f"t{number}" for number in range(7)]
VAL = [f"v{number}" for number in range(5)]
SEED = {"first": "a", "second": "b", "third": "c"}


def score_of(example: str, candidate: Mapping[str, str]) -> float:
    """One of 0, 0.1, … 1, by the texts alone."""
    return (sha256(repr((example, sorted(candidate.items()))).encode()).digest()[0] % 11) / 10


def reflect(prompt: str | list[dict[str, Any]]) -> str:
    """A reflection model: another text for every prompt."""
    return f"```\n{sha256(str(prompt).encode()).hexdigest()[:8]}\n```"


class Silent:
    """A logger."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, message: str) -> None:
        self.lines.append(message)


@dataclass
class HashAdapter:
    """Scores by hash. Notes what it is asked, how many threads were in it at once, and objects to being changed."""

    calls: list[Call] = field(default_factory=list)
    objectives: bool = False
    most: int = 0
    _inside: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def evaluate(
        self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Any, Any]:
        with self._lock:
            self.calls.append((tuple(batch), tuple(sorted(candidate.items())), capture_traces))
            self._inside += 1
            self.most = max(self.most, self._inside)
        scores = [score_of(example, candidate) for example in batch]
        traces = [{"example": example, "score": score} for example, score in zip(batch, scores, strict=True)]
        with self._lock:
            self._inside -= 1
        return EvaluationBatch(
            outputs=[f"{example} done" for example in batch],
            scores=scores,
            trajectories=traces if capture_traces else None,
            objective_scores=[{"score": score, "rest": 1 - score} for score in scores] if self.objectives else None,
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: EvaluationBatch[Any, Any], components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        records = [
            {"Inputs": trace["example"], "Generated Outputs": "…", "Feedback": f"scored {trace['score']}"}
            for trace in eval_batch.trajectories or []
        ]
        return dict.fromkeys(components_to_update, records)


class GEPAHashAdapter(HashAdapter):
    """As gepa's own code wants it: with the attribute."""

    propose_new_texts = None


class Recorder:
    """A callback that notes what it is told, without what can't be compared."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        if not re.fullmatch(r"on_[a-z_]+", name):
            raise AttributeError(name)

        def note(event: dict[str, Any]) -> None:
            left_out = {"state", "final_state", "trainset_loader", "run_dir", "reason", "prompts"}
            left_out |= {"raw_lm_outputs", "outputs_by_val_id"}
            self.told.append((name, {key: value for key, value in event.items() if key not in left_out}))

        return note


def optimize(adapter: Any, **arguments: Any) -> Any:
    """Run `compat.optimize` with a small task, unless ``arguments`` say otherwise."""
    given: dict[str, Any] = {
        "seed_candidate": dict(SEED),
        "trainset": list(TRAIN),
        "valset": list(VAL),
        "reflection_lm": reflect,
        "max_metric_calls": 120,
        "logger": Silent(),
    }
    return compat.optimize(adapter=adapter, **{**given, **arguments})


class First:
    """Always selects the seed."""

    def select_candidate_idx(self, state: Any) -> int:
        return 0
