"""How ACE's stages read the playbook, and how a task's answers come to cite it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flowevolve.algorithms.ace.playbook import Bullet, Playbook, render, within
from flowevolve.core.artifact import Artifact
from flowevolve.core.context import StageContext
from flowevolve.core.model import Message
from flowevolve.core.record import Record
from flowevolve.core.task import Call, ChatModel, Example, Rollout, Task
from flowevolve.prompts.playbook import with_playbook
from flowevolve.prompts.reading.notes import NOTHING_USED, split_citation

CITED = "cited"
"""The component of the call that a `CitingTask` adds to a rollout. Its output names the bullets."""


class PlaybookRead(Record, kind="ace.read"):
    """The version of the playbook that a piece of work uses."""

    version: int


@dataclass(frozen=True)
class Reader:
    """Reads a playbook so that work that is repeated after an interruption reads the same version again."""

    playbook: Playbook
    seed: Artifact
    token_budget: int

    def now(self, context: StageContext, key: str | None = None) -> tuple[int, list[Bullet]]:
        """The version of the playbook that this work uses from here on, and its bullets."""
        version = context.decide(PlaybookRead, lambda: PlaybookRead(version=context.pool.version), key=key).version
        return version, self.bullets(version, context)

    def bullets(self, version: int, context: StageContext) -> list[Bullet]:
        """The bullets as of a version of the pool, oldest first."""
        if version == context.pool.version:
            return list(self.playbook.bullets)
        return list(Playbook.as_of(context.pool.updates_between(0, version)).bullets)

    def shown(self, bullets: Sequence[Bullet]) -> list[Bullet]:
        """The bullets that a prompt has room for."""
        return within(bullets, self.token_budget)

    def artifact(
        self, bullets: Sequence[Bullet], context: StageContext, *, cite: bool = False, reflection: str = ""
    ) -> Artifact:
        """The seed with the playbook worked in, which the task is run with."""
        shown = render(self.shown(bullets))
        return with_playbook(context.templates, self.seed, shown, cite=cite, reflection=reflection)


class CitingTask:
    """A task whose answers may end with a line that cites bullets; the task itself does not see that line."""

    def __init__(self, task: Task) -> None:
        self.name = task.name
        self.data = task.data
        self._task = task

    def seed(self) -> Artifact:
        return self._task.seed()

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        citing = _CitingModel(llm)
        rollout = await self._task.rollout(artifact, example, citing)
        cited = " ".join(dict.fromkeys(citing.cited))
        return replace(rollout, calls=(*rollout.calls, Call(CITED, {}, cited)))


class _CitingModel:
    def __init__(self, llm: ChatModel) -> None:
        self.cited: list[str] = []
        self._llm = llm

    async def __call__(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        text, cited = split_citation(await self._llm(messages, max_tokens=max_tokens))
        self.cited += cited
        return text


def cited_bullets(rollout: Rollout, shown: Sequence[Bullet]) -> tuple[Bullet, ...]:
    """The bullets that a rollout cites. If it cites none: no bullets if it says that it used none, else all that it was
    shown.
    """
    cited = {name for call in rollout.calls if call.component == CITED for name in call.output.split()}
    used = tuple(bullet for bullet in shown if bullet.id in cited)
    return used if used or NOTHING_USED in cited else tuple(shown)


def question_of(rollout: Rollout) -> str:
    """The inputs of the rollout's first call."""
    return "\n".join(text for call in rollout.calls[:1] for text in call.inputs.values())
