"""Rows, a metric and a model that answers with what it was asked, for tasks of a metric."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from flowevolve.core.model import Message
from flowevolve.core.task import Rollout
from flowevolve.tasks.metric import MetricTask
from flowevolve.tasks.rows import GivenRow

MORE = [{"question": f"What is {n} + {n}?", "answer": 2 * n} for n in range(40)]


ROWS = MORE[:8]


def exact(row: GivenRow, output: str) -> bool:
    return output == str(row["answer"])


class Echo:
    """Answers with what it was asked last, and keeps all that it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    async def __call__(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        self.asked.append(tuple(message.content for message in messages))
        return messages[-1].content


def rolled(task: MetricTask, number: int = 0) -> tuple[Rollout, Echo]:
    llm = Echo()
    return asyncio.run(task.rollout(task.seed(), task.data.train[number], llm)), llm


async def awaits_what_it_cancelled() -> None:
    """What a library may do that gives up something and forgets that it awaits it."""
    given_up = asyncio.get_running_loop().create_future()
    given_up.cancel()
    await given_up


def fails(row: GivenRow, output: str) -> bool:
    return bool(1 // (len(output) - len(output)))
