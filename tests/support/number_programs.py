"""Programs that are one number, and a coder who changes it: for tests of algorithms that evolve programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

import anyio

from flowevolve.core.artifact import Artifact
from flowevolve.core.model import ChatReply, ChatRequest, EmbedReply, EmbedRequest, Usage
from flowevolve.core.task import ChatModel, Example, Rollout, Score
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.programs.problem import PROGRAM, Case, Verdict
from flowevolve.programs.task import ProgramTask
from flowevolve.prompts.programs import META_TITLE, PROGRAM_HEADING
from flowevolve.sandbox import Sandbox

_VALUE = re.compile(r"^value = (-?[\d.]+)$", re.MULTILINE)


class Numbers:
    """The program's number is its score; one above ``limit`` fails."""

    name = "numbers"
    statement = "Make the number large, but not too large."
    cases: Sequence[Case] = (Case("one"), Case("two"))

    def __init__(self, *, limit: float = 3.0, worst: float = 0.0, seed: str = "value = 1.0") -> None:
        self.worst = worst
        self.limit = limit
        self._seed = seed

    def seed(self) -> Artifact:
        return Artifact({PROGRAM: self._seed}, "program")

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        raise NotImplementedError

    def verdict(self, source: str) -> Verdict:
        found = _VALUE.search(source)
        if found is None or float(found[1]) > self.limit:
            return Verdict(self.worst, "It failed.", "error: no number below the limit", {"seconds": 0.0})
        return Verdict(float(found[1]), f"It is {found[1]}.", None, {"seconds": len(source) / 10})


class NumberTask(ProgramTask):
    """Runs them without a sandbox, in a second each."""

    def __init__(self, problem: Numbers | None = None) -> None:
        self.numbers = problem or Numbers()
        super().__init__(self.numbers)

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        await anyio.sleep(1)
        verdict = self.numbers.verdict(artifact[PROGRAM])
        score = Score(
            verdict.value, verdict.feedback, passed=False, failure=verdict.failure, metrics=dict(verdict.metrics)
        )
        return Rollout(example.id, "", score)


class Coder:
    """Adds a little to the number, or takes some away; now and then its reply can't be read. Takes two seconds."""

    backend = "coder"

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        await anyio.sleep(2)
        prompt = request.messages[-1].content
        random = Random(f"{request.seed} {prompt}")
        if prompt.startswith(META_TITLE):
            text = f"```\nAdvice number {random.randrange(10**6)}.\n```"
        elif random.random() < 0.1:
            text = "I would rather not."
        else:
            section = prompt.partition(PROGRAM_HEADING)[2]
            found = _VALUE.search(section)
            value = (float(found[1]) if found else 0.0) + random.uniform(-0.3, 0.4)
            text = f"```\nvalue = {round(value, 4)}\n```"
        return ChatReply(text, Usage(100, 10))

    async def embed(self, request: EmbedRequest, *, timeout: float | None) -> EmbedReply:
        raise NotImplementedError

    async def models(self) -> tuple[str, ...]:
        return ("coder",)

    async def aclose(self) -> None:
        pass


def coder() -> Mapping[str, Role]:
    return {"code": Model(Coder(), "coder"), "meta": Model(Coder(), "coder")}
