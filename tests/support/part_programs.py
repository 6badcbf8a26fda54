"""Programs of several parts that are each a number, and agents who work on them: for tests of CSE."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from random import Random

import anyio

from flowevolve.core.artifact import Artifact
from flowevolve.core.model import ChatReply, ChatRequest, EmbedReply, EmbedRequest, Usage
from flowevolve.core.task import ChatModel, Example, Rollout, Score
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.programs.parts import REST
from flowevolve.programs.problem import PROGRAM, Case, Verdict
from flowevolve.programs.task import ProgramTask
from flowevolve.prompts.memory import COMPRESS_TITLE, DISTILL_TITLE, QUERIES_TITLE, REFLECT_TITLE
from flowevolve.prompts.plans import IMPLEMENT_TITLE, PLAN_TITLE
from flowevolve.prompts.programs import CHANGE_TITLES
from flowevolve.prompts.slots import DIAGNOSE_TITLE, PARTS_HEADING
from flowevolve.sandbox import Sandbox
from flowevolve.sim.worlds.code.prompt import read_prompt, sections

SEED = """\
START = 0


def parse():
    return 1.0


def solve():
    return 1.0
"""
_NUMBER = re.compile(r"^    return (-?[\d.]+)$", re.MULTILINE)


class Parts:
    """A program's score is the sum of the numbers that its functions return; one number above ``limit`` fails it."""

    name = "parts"
    statement = "Make the sum of the numbers large."
    cases: Sequence[Case] = (Case("one"),)

    def __init__(self, *, limit: float = 3.0, worst: float = 0.0, seed: str = SEED, integral: bool = False) -> None:
        self.worst = worst
        self.limit = limit
        self._seed = seed
        self._integral = integral

    def seed(self) -> Artifact:
        return Artifact({PROGRAM: self._seed}, "program")

    async def judge(self, artifact: Artifact, case: Case, sandbox: Sandbox) -> Verdict:
        raise NotImplementedError

    def verdict(self, source: str) -> Verdict:
        numbers = [float(each) for each in _NUMBER.findall(source)]
        if not numbers or max(numbers) > self.limit:
            return Verdict(self.worst, "It failed.", "error: a number above the limit", {"seconds": 0.0})
        value = sum(numbers)
        measured = {"integral": 1 / value, "et": value / 2, "mp": 1.0, "mi": value / 2} if self._integral else {}
        return Verdict(value, f"The sum is {value}.", None, {"seconds": 1.0, **measured})


class PartsTask(ProgramTask):
    """Runs them without a sandbox, in a second each."""

    def __init__(self, problem: Parts | None = None) -> None:
        self.parts = problem or Parts()
        super().__init__(self.parts)

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        await anyio.sleep(1)
        verdict = self.parts.verdict(artifact[PROGRAM])
        score = Score(
            verdict.value, verdict.feedback, passed=False, failure=verdict.failure, metrics=dict(verdict.metrics)
        )
        return Rollout(example.id, "", score)


class Agents:
    """Plays all roles. Diagnoses keep ``parse`` and want the rest improved; a coder changes every number, of parts to
    keep as well. Takes ``seconds`` for a call.
    """

    backend = "agents"

    def __init__(self, *, seconds: float = 2.0, silent: Sequence[str] = (), prompts: list[str] | None = None) -> None:
        self.seconds = seconds
        self.silent = tuple(silent)
        """Titles of prompts that it has nothing to say to."""
        self.prompts = [] if prompts is None else prompts

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        prompt = request.messages[-1].content
        self.prompts.append(prompt)
        await anyio.sleep(self.seconds)
        silent = prompt.startswith(self.silent) if self.silent else False
        text = "I would rather not." if silent else self.say(prompt, Random(f"{request.seed} {prompt}"))
        return ChatReply(text, Usage(100, 10))

    def say(self, prompt: str, random: Random) -> str:
        match prompt.partition("\n")[0]:
            case title if title == PLAN_TITLE:
                return json.dumps([f"plan number {number}" for number in range(1, 10)])
            case title if title in (IMPLEMENT_TITLE, *CHANGE_TITLES.values()):
                return f"```\n{self.program(prompt, random)}\n```"
            case title if title == DIAGNOSE_TITLE:
                return json.dumps({"slots": self.slots(prompt)})
            case title if title == REFLECT_TITLE:
                number = random.randrange(30)
                said = {"direction": f"way {number}", "outcome": "success", "lesson": f"Lesson {number}. " * 3}
                return f"```json\n{json.dumps(said)}\n```"
            case title if title == COMPRESS_TITLE:
                kept = {"direction": "in short", "outcome": "success", "count": 2}
                return json.dumps({"directions": [kept], "lessons": [{"kind": "success", "text": "Go on."}]})
            case title if title == QUERIES_TITLE:
                return json.dumps(["large numbers", "sums that grow"])
            case title if title == DISTILL_TITLE:
                return json.dumps([{"title": "sums", "text": "Make each number larger."}])
            case title:
                raise AssertionError(f"nobody asked such a thing before: {title}")

    def program(self, prompt: str, random: Random) -> str:
        parent = read_prompt(prompt).parent
        assert parent is not None
        (text,) = parent.program.values()
        return _NUMBER.sub(lambda found: f"    return {float(found[1]) + random.uniform(-0.3, 0.5):.3f}", text)

    def slots(self, prompt: str) -> list[dict[str, object]]:
        parts = [line.removeprefix("- ") for line in sections(prompt)[PARTS_HEADING].strip().split("\n")]
        keep = [part for part in parts if part in ("parse", REST)]
        free = [part for part in parts if part not in keep]
        return [
            {"slot": "io_parsing", "parts": keep, "status": "keep", "why": "it reads quickly"},
            {"slot": "core_logic", "parts": free, "status": "improve", "why": "the number is small"},
        ]

    async def embed(self, request: EmbedRequest, *, timeout: float | None) -> EmbedReply:
        raise NotImplementedError

    async def models(self) -> tuple[str, ...]:
        return ("agents",)

    async def aclose(self) -> None:
        pass


def roles(agents: Agents | None = None) -> Mapping[str, Role]:
    role = Model(agents or Agents(), "agents")
    return {"code": role, "agent": role}


def numbers(source: str) -> list[float]:
    return [float(each) for each in _NUMBER.findall(source)]
