"""What is kept of a repeat: the steps of both methods, and the scores of their candidates on the held-out rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.confirm.claims import SHARE_OF_TIME, Of
from bench.confirm.methods import Step, Texts
from bench.confirm.scoring import HeldOutScores
from flowevolve.core.task import Task

Method = Literal["gepa", "defaults"]
METHODS: Sequence[Method] = ("gepa", "defaults")
SITTING = "sitting"


@dataclass(frozen=True, slots=True)
class Course:
    """The steps that a method has reported so far, and in how many sittings: a new one after each interruption."""

    steps: Sequence[Step]
    sittings: int

    @property
    def ended(self) -> bool:
        return bool(self.steps) and self.steps[-1].calls is not None

    def best_at(self, seconds: float) -> Texts | None:
        """The best candidate by then; None before the seed was validated."""
        return next((step.best for step in reversed(self.steps) if step.seconds <= seconds), None)


class Repeat:
    """One repeat on one set of rows, in a folder of its own."""

    def __init__(self, out: Path, rows: str, number: int) -> None:
        self.work = f"{rows}/{number}"
        self.folder = out / rows / str(number)
        self.number = number
        self.scores_file = self.folder / "held_out.jsonl"

    @property
    def begun(self) -> bool:
        return self.folder.exists()

    def steps_file(self, method: Method) -> Path:
        return self.folder / f"{method}.jsonl"

    def course(self, method: Method) -> Course:
        file = self.steps_file(method)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        told = [json.loads(line) for line in lines]
        return Course([Step(**each) for each in told if SITTING not in each], sum(SITTING in each for each in told))

    def candidates(self, task: Task) -> Mapping[Of, Texts]:
        """The candidates to score on the held-out rows; none until both methods have ended.

        The defaults' candidate after a share of gepa's time is known only if neither method was interrupted.
        """
        gepa, defaults = (self.course(method) for method in METHODS)
        if not (gepa.ended and defaults.ended):
            return {}
        seed = dict(task.seed())
        found: dict[Of, Texts] = {"seed": seed, "gepa": gepa.steps[-1].best, "defaults": defaults.steps[-1].best}
        if gepa.sittings == defaults.sittings == 1:
            found["half"] = defaults.best_at(SHARE_OF_TIME * gepa.steps[-1].seconds) or seed
        return found

    def scores(self, task: Task) -> Mapping[Of, Sequence[float]]:
        """The scores of those candidates that have one on each held-out row."""
        known = HeldOutScores(self.scores_file)
        found = {of: known.of(texts, task.data.test) for of, texts in self.candidates(task).items()}
        return {of: scores for of, scores in found.items() if scores is not None}

    def complete(self, task: Task) -> bool:
        candidates = self.candidates(task)
        return bool(candidates) and self.scores(task).keys() == candidates.keys()
