"""Our tasks' rollouts and reflections for programs that use threads: the same code and prompts, no event loop."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TypeVar

from bench.peers.chats import Chats
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.core.task import Example, Rollout, Task
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reflection import merge_prompt, reflection_examples, reflection_prompt
from flowevolve.prompts.shipped import SHIPPED

T = TypeVar("T")


class Blocking:
    """A `flowevolve.core.task.ChatModel` that blocks its thread instead of waiting."""

    def __init__(self, chats: Chats) -> None:
        self._chats = chats

    async def __call__(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        return self._chats(messages, max_tokens)


def roll_out(task: Task, components: dict[str, str], example: Example, chats: Chats) -> Rollout:
    """Run and score one example with the task's own code."""
    return _finish(task.rollout(Artifact(components), example, Blocking(chats)))


def reflect(component: str, text: str, rollouts: Sequence[Rollout], chats: Chats) -> str | None:
    """A better text for a component, by our reflection prompt; None if the reply can't be read."""
    examples = reflection_examples(component, rollouts)
    return _written(chats([Message("user", reflection_prompt(SHIPPED, component, text, examples))]))


def merge(component: str, origin: str, versions: Sequence[str], chats: Chats) -> str | None:
    """One text merged from several versions of ``origin`` by our prompt; None if the reply can't be read."""
    return _written(chats([Message("user", merge_prompt(SHIPPED, component, origin, versions))]))


def _written(reply: str) -> str | None:
    try:
        return read_instruction(reply)
    except UnparsableReplyError:
        return None


def _finish(work: Coroutine[object, None, T]) -> T:
    """Run a coroutine that never waits. A task that awaits anything but its model can't be run like this."""
    try:
        work.send(None)
    except StopIteration as ended:
        value: T = ended.value
        return value
    work.close()
    raise TypeError("the task waits for something other than its model")
