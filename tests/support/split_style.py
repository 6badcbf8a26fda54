"""The house style with its instructions in several components."""

from __future__ import annotations

from collections.abc import Mapping

from flowevolve.core.artifact import Artifact
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout
from flowevolve.tasks.house_style import house_style_task


class SplitStyle:
    """``components`` are the seed's; of the validation examples there are ``val``."""

    name = "split_style"

    def __init__(self, components: Mapping[str, str], val: int) -> None:
        self._components = components
        self._whole = house_style_task()
        data = self._whole.data
        self.data = Dataset(data.train, data.val[:val])

    def seed(self) -> Artifact:
        return Artifact(self._components)

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        system = Artifact({"system_prompt": "\n".join(artifact[name] for name in self._components)})
        rollout = await self._whole.rollout(system, example, llm)
        (call,) = rollout.calls
        calls = tuple(Call(name, call.inputs, call.output) for name in self._components)
        return Rollout(rollout.example_id, rollout.output, rollout.score, calls)
