"""Scores candidates on the held-out rows, in the same way for both methods."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path

from bench.confirm.gate import Gate
from flowevolve._util.tasks import run_all
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import LLMError, Message
from flowevolve.core.task import ChatModel, Example, Task


def asking(gate: Gate, work: str) -> ChatModel:
    """The gate as the model that a task calls."""

    async def ask(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        return (await gate.ask(work, messages, max_tokens)).text

    return ask


def digest(texts: Mapping[str, str]) -> str:
    """A name for a candidate's texts."""
    return blake2b(json.dumps(dict(texts), sort_keys=True).encode(), digest_size=8).hexdigest()


class HeldOutScores:
    """The scores of candidates on the held-out rows, kept in a file row by row."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[tuple[str, str], float] = {}
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                candidate, row, score = json.loads(line)
                self._known[candidate, row] = score

    def of(self, texts: Mapping[str, str], rows: Sequence[Example]) -> list[float] | None:
        """A candidate's scores in the order of the rows; None if one is missing."""
        candidate = digest(texts)
        found = [self._known.get((candidate, row.id)) for row in rows]
        known = [score for score in found if score is not None]
        return known if len(known) == len(found) else None

    async def score(self, gate: Gate, work: str, task: Task, candidates: Sequence[Mapping[str, str]]) -> None:
        """Score these candidates on the rows on which they have no score yet. A row that gets no answer scores 0."""
        wanted = {(digest(texts), row.id): (texts, row) for texts in candidates for row in task.data.test}
        model = asking(gate, work)
        with self._file.open("a", encoding="utf-8") as file:

            async def one(key: tuple[str, str], texts: Mapping[str, str], row: Example) -> None:
                try:
                    self._known[key] = (await task.rollout(Artifact(texts), row, model)).score.value
                except LLMError:
                    self._known[key] = 0.0
                file.write(json.dumps([*key, self._known[key]]) + "\n")
                file.flush()

            await run_all([partial(one, key, *each) for key, each in wanted.items() if key not in self._known])
