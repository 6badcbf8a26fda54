"""Text classification over several data sets, for algorithms that evolve a harness: the code around a model.

A harness is one Python file with a class ``Memory``:

    Memory(llm, labels)             llm(prompt: str) -> str; labels: list[str]
    learn_from_batch(batch)         learn from a batch, a list of {"text": str, "label": str}
    predict(text) -> str            return the label of a text
    get_state() -> JSON             return all that was learnt
    set_state(state)                take over, in a new object, what another one has learnt
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout
from flowevolve.tasks.loaders import no_text

COMPONENT = "harness"
BASELINES: Mapping[str, str] = {
    name: (Path(__file__).parent / "data" / "harnesses" / f"{name}.txt").read_text(encoding="utf-8")
    for name in ("zero_shot", "few_shot")
}
"""The sources of the harnesses that ship."""


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """One data set with its fields and labels. Its ``test`` split is for the end of a run; no proposer sees it."""

    name: str
    data: Dataset
    text_fields: Sequence[str]
    label_field: str
    labels: Sequence[str]

    def text(self, example: Example) -> str:
        return "\n".join(str(example.data[field]) for field in self.text_fields)

    def label(self, example: Example) -> str:
        return str(example.data[self.label_field])


def labelled_set(name: str, data: Dataset, text_fields: Sequence[str], label_field: str) -> LabelledSet:
    """Make a set of rows with texts and labels.

    Raises:
        InputError: if there are no rows to learn from or to score on, or a row lacks a field.
    """
    if not data.train or not data.val:
        raise InputError(f"task.sets.{name}: a harness needs training and validation examples")
    for example in data:
        for field in (*text_fields, label_field):
            if not isinstance(example.data.get(field), str):
                raise InputError(f"task.sets.{name}: {no_text(example, field)}")
    labels = tuple(sorted({str(example.data[label_field]) for example in data}))
    return LabelledSet(name, data, tuple(text_fields), label_field, labels)


class HarnessTask:
    """Harnesses over one or more data sets. ``data`` holds the rows of all sets, with the ids ``SET/ROW``.

    Raises:
        InputError: if there is no set.
    """

    description: ClassVar[str] = "code around a model that classifies texts"

    def __init__(self, sets: Sequence[LabelledSet], name: str = "harness") -> None:
        if not sets:
            raise InputError("task.sets: a harness needs at least one data set")
        self.name = name
        self.sets: Mapping[str, LabelledSet] = {each.name: each for each in sets}
        self.data = Dataset(
            [_named(each, row) for each in sets for row in each.data.train],
            [_named(each, row) for each in sets for row in each.data.val],
        )

    def seed(self) -> Artifact:
        return harness(BASELINES["zero_shot"])

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        """Refuse: a harness learns before it is scored, so it has no rollouts of single examples.

        Raises:
            InputError: always.
        """
        raise InputError(
            f"task {self.name!r} has no single rollouts; run it with algorithm 'meta_harness', without held_out"
        )


def harness(source: str) -> Artifact:
    return Artifact({COMPONENT: source}, kind="harness")


def _named(each: LabelledSet, row: Example) -> Example:
    return Example(f"{each.name}/{row.id}", row.data)
