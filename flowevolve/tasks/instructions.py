"""Instruction following: verifiers check the answers, as in IFEval and IFBench."""

from __future__ import annotations

from typing import ClassVar

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.tasks.loaders import text_of
from flowevolve.tasks.verifiers import Constraint

COMPONENT = "system_prompt"
SEED_PROMPT = "You are a helpful assistant. Answer the request."


class InstructionFollowing:
    """Rows have ``prompt``, ``instruction_id_list`` and ``kwargs``, which lists the parameters of each instruction.

    A response's score is the share of the constraints that it meets; with ``strict``, 1 if it meets all, and else 0.

    Raises:
        InputError: if a row lacks a field or names an unknown constraint.
    """

    description: ClassVar[str] = "follow verifiable instructions (IFEval and IFBench rows)"

    def __init__(
        self, data: Dataset, *, name: str = "instructions", seed_prompt: str = SEED_PROMPT, strict: bool = False
    ) -> None:
        self.name = name
        self.data = data
        self._seed_prompt = seed_prompt
        self._strict = strict
        self._rows = {example.id: (text_of(example, "prompt"), _constraints(example)) for example in data}

    def seed(self) -> Artifact:
        return Artifact({COMPONENT: self._seed_prompt})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        prompt, constraints = self._rows[example.id]
        output = await llm([Message("system", artifact[COMPONENT]), Message("user", prompt)])
        call = Call(COMPONENT, {"request": prompt}, output)
        return Rollout(example.id, output, self.score(output, constraints), (call,))

    def score(self, output: str, constraints: list[Constraint]) -> Score:
        """The score of an output, with one line of feedback for each constraint."""
        met = [constraint.met_by(output) for constraint in constraints]
        share = sum(met) / len(met) if met else 1.0
        lines = [
            f"{'Met' if ok else 'Not met'}: {constraint.describe()}"
            for ok, constraint in zip(met, constraints, strict=True)
        ]
        return Score(float(all(met)) if self._strict else share, "\n".join(lines), passed=all(met))


def _constraints(example: Example) -> list[Constraint]:
    ids, kwargs = example.data.get("instruction_id_list"), example.data.get("kwargs")
    if not isinstance(ids, list) or not isinstance(kwargs, list) or len(ids) != len(kwargs):
        raise InputError(f"row {example.id}: 'instruction_id_list' and 'kwargs' must be lists of one length")
    try:
        constraints = [
            Constraint(str(name), given if isinstance(given, dict) else {})
            for name, given in zip(ids, kwargs, strict=True)
        ]
        for constraint in constraints:
            constraint.describe()
    except InputError as error:
        raise InputError(f"row {example.id}: {error}") from None
    return constraints
