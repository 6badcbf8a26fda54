"""Questions about financial reports, scored as in ACE (arXiv 2510.04618): FiNER tags and XBRL formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.tasks.loaders import no_text
from flowevolve.tasks.scoring import decimal_of, stated_line, stated_number, without_unit

COMPONENT = "instruction"
TAGS_SEED = "Answer the questions. On the last line write 'Answer:' and the tags in the order asked, joined by commas."
NUMBER_SEED = "Work out the answer. On the last line write 'Answer:' and the number."


class _Stated:
    """A task whose rows have a question (``context`` or ``question``) and the right answer (``target`` or ``answer``).

    Raises:
        InputError: if a row lacks one of them.
    """

    def __init__(self, data: Dataset, name: str, seed_prompt: str, score: Callable[[str, str], Score]) -> None:
        self.name = name
        self.data = data
        self._seed_prompt = seed_prompt
        self._score = score
        for example in data:
            _field(example, "context", "question")
            _field(example, "target", "answer")

    def seed(self) -> Artifact:
        return Artifact({COMPONENT: self._seed_prompt})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        question, gold = _field(example, "context", "question"), _field(example, "target", "answer")
        output = await llm([Message("system", artifact[COMPONENT]), Message("user", question)])
        return Rollout(
            example.id, output, self._score(output, gold), (Call(COMPONENT, {"question": question}, output),)
        )


class Finer(_Stated):
    """FiNER: several questions in each row, answered by comma-separated tags; scored by the share of right tags."""

    description: ClassVar[str] = "XBRL tags of numbers in financial reports (FiNER rows)"

    def __init__(self, data: Dataset, *, name: str = "finer", seed_prompt: str = TAGS_SEED) -> None:
        super().__init__(data, name, seed_prompt, score_tags)


class Formula(_Stated):
    """XBRL formulas: the answer is one number, which is right if it is the same to two decimals, as the rows ask."""

    description: ClassVar[str] = "numbers computed from financial formulas (XBRL Formula rows)"

    def __init__(self, data: Dataset, *, name: str = "formula", seed_prompt: str = NUMBER_SEED) -> None:
        super().__init__(data, name, seed_prompt, score_number)
        for example in data:
            answer = _field(example, "target", "answer")
            if decimal_of(answer) is None:
                raise InputError(f"row {example.id}: the right answer is {answer!r}, but has to be a number")


def score_tags(output: str, gold: str) -> Score:
    """Score comma-separated tags by the share of those that are right at their place. Missing tags are wrong."""
    wanted = [tag.strip() for tag in gold.split(",")]
    said = [tag.strip(" \t'\"`*.[]") for tag in stated_line(output).split(",")]
    said += [""] * (len(wanted) - len(said))
    right = [first.lower() == second.lower() for first, second in zip(said, wanted, strict=False)]
    lines = [
        f"Tag {number}: {'right' if ok else 'wrong'}, it was {first!r}; the right one is {second!r}."
        for number, (ok, first, second) in enumerate(zip(right, said, wanted, strict=False), 1)
    ]
    return Score(sum(right) / len(wanted), "\n".join(lines), passed=all(right))


def score_number(output: str, gold: str) -> Score:
    """Score a number, which is right if it equals the right one to two decimals."""
    stated = stated_number(output)
    said, wanted = decimal_of(stated), decimal_of(gold)
    said = decimal_of(without_unit(stated)) if said is None else said
    right = said is not None and wanted is not None and round(said, 2) == round(wanted, 2)
    feedback = f"{'Right' if right else 'Wrong'}: the answer given was {stated!r}, the right one is {gold!r}."
    return Score(float(right), feedback, passed=right)


def _field(example: Example, *names: str) -> str:
    for name in names:
        value = example.data.get(name)
        if isinstance(value, str) and value.strip():
            return value
    raise no_text(example, *names)
