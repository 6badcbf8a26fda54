"""Classification of texts into a fixed set of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.tasks.loaders import no_text
from flowevolve.tasks.scoring import stated_label

COMPONENT = "instruction"


class Classification:
    """Rows have one or more text fields and a label field. ``labels`` default to those that occur in the data.

    Raises:
        InputError: if a row lacks a field or has a label that is not among ``labels``.
    """

    description: ClassVar[str] = "texts to one of several labels"

    def __init__(
        self,
        data: Dataset,
        *,
        text_fields: Sequence[str] = ("question",),
        label_field: str = "answer",
        labels: Sequence[str] | None = None,
        name: str = "classification",
        seed_prompt: str | None = None,
    ) -> None:
        self.name = name
        self.data = data
        self._text_fields = tuple(text_fields)
        self._label_field = label_field
        for example in data:
            for field in (*self._text_fields, label_field):
                if not isinstance(example.data.get(field), str):
                    raise no_text(example, field)
        self.labels = tuple(labels or sorted({str(example.data[label_field]) for example in data}))
        for example in data:
            if example.data[label_field] not in self.labels:
                known = ", ".join(self.labels)
                raise InputError(f"row {example.id}: label {example.data[label_field]!r} is not one of {known}")
        self._seed_prompt = seed_prompt or f"Classify the text. Answer with one of: {', '.join(self.labels)}."

    def seed(self) -> Artifact:
        return Artifact({COMPONENT: self._seed_prompt})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        text = "\n".join(str(example.data[field]) for field in self._text_fields)
        output = await llm([Message("system", artifact[COMPONENT]), Message("user", text)])
        gold, stated = str(example.data[self._label_field]), stated_label(output, self.labels)
        right = stated == gold
        found = f"the label was {stated!r}" if stated is not None else "no single label could be read from the answer"
        feedback = f"{'Right' if right else 'Wrong'}: {found}; the right one is {gold!r}."
        call = Call(COMPONENT, {"text": text}, output)
        return Rollout(example.id, output, Score(float(right), feedback, passed=right), (call,))
