"""The shipped tasks by name. A configuration's ``[task]`` section names one, and gives its arguments."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from flowevolve._util.errors import InputError
from flowevolve.core.task import Dataset, Example, Task
from flowevolve.tasks.classification import Classification
from flowevolve.tasks.finance import NUMBER_SEED, TAGS_SEED, Finer, Formula
from flowevolve.tasks.house_style import house_style_task
from flowevolve.tasks.instructions import SEED_PROMPT, InstructionFollowing
from flowevolve.tasks.labelling import HarnessTask, labelled_set
from flowevolve.tasks.loaders import Size, examples, load_hf, load_rows, split_rows
from flowevolve.tasks.math import SEED_PROMPT as MATH_SEED, MathAnswer
from flowevolve.tasks.multihop import MultiHopQA


class DataSource(BaseModel):
    """Where rows come from (``[task.data]``): one file or hub data set to be split, or one file for each split."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path | None = None
    hf: str | None = None
    hf_split: str = "train"
    hf_config: str | None = None
    """Which of the hub's configurations of the data set to load, if it has several."""
    train: Path | None = None
    val: Path | None = None
    test: Path | None = None
    sizes: dict[str, Size] = Field(default_factory=lambda: {"train": 0.4, "val": 0.3, "test": 0.3})
    """The sizes of the splits of ``path`` or ``hf``: counts, or fractions below 1."""
    seed: int = 0
    """The seed of the shuffle before splitting. It is not the run's, so that runs with other seeds see equal splits."""
    id_field: str | None = None

    def load(self) -> Dataset:
        """Read the rows and split them.

        Raises:
            InputError: if there is not exactly one source, or it can't be read or split.
        """
        files = {"train": self.train, "val": self.val, "test": self.test}
        given = {split: file for split, file in files.items() if file is not None}
        if (self.path is not None) + bool(given) + (self.hf is not None) != 1:
            raise InputError("task.data: give one source: path, or train and val (and test), or hf")
        if given:
            return self._separate(given)
        rows = load_rows(self.path) if self.path is not None else load_hf(self.hf or "", self.hf_split, self.hf_config)
        return split_rows(rows, self.sizes, self.seed, id_field=self.id_field, source=str(self.path or self.hf))

    @contextmanager
    def loaded(self) -> Generator[Dataset]:
        """As `load`, for a ``with`` block. An InputError in the block gets the source of the rows as a prefix."""
        rows = self.load()
        try:
            yield rows
        except InputError as error:
            files = [str(file) for file in (self.path, self.train, self.val, self.test) if file is not None]
            raise InputError(f"{', '.join(files) or self.hf}: {error}") from None

    def _separate(self, files: Mapping[str, Path]) -> Dataset:
        if "train" not in files or "val" not in files:
            raise InputError("task.data: separate files need both train and val")
        rows = {split: examples(load_rows(file), self.id_field, str(file)) for split, file in files.items()}
        # Ids must be unique over all splits, but two files may use the same ids.
        named = {split: [Example(f"{split}-{row.id}", row.data) for row in part] for split, part in rows.items()}
        return Dataset(named["train"], named["val"], named.get("test", ()))


def house_style() -> Task:
    """Answers in a house style: a small set that ships with the package, for trying things."""
    return house_style_task()


def instructions(data: DataSource, seed_prompt: str = SEED_PROMPT, strict: bool = False) -> Task:
    """Instructions whose keeping can be checked: rows of IFEval or IFBench."""
    with data.loaded() as rows:
        return InstructionFollowing(rows, seed_prompt=seed_prompt, strict=strict)


def multihop(data: DataSource, metric: Literal["f1", "em"] = "f1") -> Task:
    """Questions over several paragraphs: rows of HotpotQA."""
    with data.loaded() as rows:
        return MultiHopQA(rows, metric=metric)


def math(data: DataSource, seed_prompt: str = MATH_SEED) -> Task:
    """Problems with a number as their answer: rows of AIME, or of your own."""
    with data.loaded() as rows:
        return MathAnswer(rows, seed_prompt=seed_prompt)


def finer(data: DataSource, seed_prompt: str = TAGS_SEED) -> Task:
    """Tags of numbers in financial reports: rows of FiNER, as in ACE's files or with one question in each row."""
    with data.loaded() as rows:
        return Finer(rows, seed_prompt=seed_prompt)


def formula(data: DataSource, seed_prompt: str = NUMBER_SEED) -> Task:
    """Questions that a formula over financial figures answers: rows of XBRL Formula."""
    with data.loaded() as rows:
        return Formula(rows, seed_prompt=seed_prompt)


def classification(
    data: DataSource,
    text_fields: tuple[str, ...] = ("question",),
    label_field: str = "answer",
    labels: tuple[str, ...] | None = None,
    seed_prompt: str | None = None,
) -> Task:
    """Texts with a label: rows of your own, whose columns ``text_fields`` and ``label_field`` name."""
    with data.loaded() as rows:
        return Classification(
            rows, text_fields=text_fields, label_field=label_field, labels=labels, seed_prompt=seed_prompt
        )


class HarnessSet(DataSource):
    """One data set for harnesses (``[task.sets.NAME]``): a source, and the names of its fields."""

    text_fields: tuple[str, ...] = ("question",)
    label_field: str = "answer"


def harness(sets: dict[str, HarnessSet]) -> Task:
    """Rows with texts and a label, for code that learns from some and is scored on others."""
    made = []
    for name, each in sets.items():
        with each.loaded() as rows:
            made.append(labelled_set(name, rows, each.text_fields, each.label_field))
    return HarnessTask(made)
