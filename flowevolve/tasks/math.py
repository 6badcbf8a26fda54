"""Mathematical problems with one final answer, in rows with AIME's fields."""

from __future__ import annotations

from typing import ClassVar

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.tasks.scoring import is_number, same_number, stated_answer, stated_number

COMPONENT = "instruction"
SEED_PROMPT = "Solve the problem. Put the final answer on the last line as 'Answer: ...'."
SOLUTION_CHARS = 1500
"""The most characters of a worked solution that feedback shows: enough for the idea, and three fit into one prompt."""


class MathAnswer:
    """Rows have ``problem`` and ``answer``, and may have ``solution``, which is shown as feedback on wrong answers.

    Raises:
        InputError: if a row lacks a field.
    """

    description: ClassVar[str] = "problems with a final answer (AIME rows)"

    def __init__(self, data: Dataset, *, name: str = "math", seed_prompt: str = SEED_PROMPT) -> None:
        self.name = name
        self.data = data
        self._seed_prompt = seed_prompt
        for example in data:
            for field in ("problem", "answer"):
                if example.data.get(field) in (None, ""):
                    raise InputError(
                        f"row {example.id}: {field!r} is missing; its columns are {', '.join(example.data)}"
                    )

    def seed(self) -> Artifact:
        return Artifact({COMPONENT: self._seed_prompt})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        problem, gold = str(example.data["problem"]), str(example.data["answer"])
        output = await llm([Message("system", artifact[COMPONENT]), Message("user", problem)])
        stated = stated_number(output) if is_number(gold) else stated_answer(output)
        right = same_number(stated, gold)
        feedback = f"{'Right' if right else 'Wrong'}: the answer given was {stated!r}, the right one is {gold!r}."
        solution = example.data.get("solution")
        if not right and isinstance(solution, str) and solution:
            feedback += f"\nA worked solution:\n{solution[:SOLUTION_CHARS]}"
        call = Call(COMPONENT, {"problem": problem}, output)
        return Rollout(example.id, output, Score(float(right), feedback, passed=right), (call,))
