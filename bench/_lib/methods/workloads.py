"""Four workloads with the shape of IFBench, HotpotQA, HoVer and AIME under GEPA: calls per example, lengths, sizes.

They resemble these data sets in load, not in subject: requests, scores and feedback are those of the task
``house_style``, which the simulated world `rules` can answer, so that candidates differ and improve. A row's request
comes with as much other text as the data set's prompts have, and takes as many calls in sequence as the published
pipeline makes. The artifact is one instruction for all calls of a row. Reflection sees only the last call, as in
pipelines in which every module has a prompt of its own and is reflected on separately.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from bench._lib.house_style import make_rows
from flowevolve._util.json_types import JSON
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import CHARS_PER_TOKEN, Message
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout
from flowevolve.sim.profiles import OutputLength
from flowevolve.tasks.house_style import SEED_PROMPT
from flowevolve.tasks.instructions import COMPONENT, InstructionFollowing

CARRIED_CHARS = 240
"""How many characters of a call's answer the next call of the same example is shown."""
SMALL = 1 / 8
"""The share of a workload's text that `small` leaves."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of prompts or answers in tokens: a lognormal distribution."""

    median: float
    sigma: float

    def draw(self, rng: random.Random) -> float:
        return self.median * math.exp(self.sigma * rng.gauss(0.0, 1.0))


@dataclass(frozen=True, slots=True)
class WholeLength(OutputLength):
    """Output tokens of a whole answer, whatever its visible text: a lognormal distribution."""

    def draw(self, rng: random.Random, visible: int) -> int:
        return max(1, min(self.most, round(Lengths(self.median, self.sigma).draw(rng))))


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload. ``context`` is the length of the text that comes with the request in every call.

    For each profile, ``outputs`` has the lengths of answers and ``speeds`` the factor by which the simulated server is
    sped up, so that a client that uses all its slots makes some 400 to 600 calls per real second.

    Lengths of answers and validation sizes are chosen so that synchronous GEPA makes about as many proposals per
    minute, and tokens per proposal, as FlashEvolve's table 1 reports. HotpotQA's row there (391 tokens per proposal,
    13 s) can't be LLM time alone, so only its short answers are kept. GEPA itself validates on 300 rows (AIME: 45).
    """

    name: str
    calls: int
    context: Lengths
    outputs: Mapping[str, Lengths]
    speeds: Mapping[str, float]
    train: int
    validation: int
    source: str


WORKLOADS: Mapping[str, Workload] = {
    each.name: each
    for each in (
        Workload(
            "ifbench",
            calls=2,
            context=Lengths(74, 0.62),
            outputs={"qwen3-8b-h100": Lengths(350, 0.8), "gpt-4o-mini-api": Lengths(150, 0.6)},
            speeds={"qwen3-8b-h100": 30, "gpt-4o-mini-api": 16},
            train=150,
            validation=60,
            source="calls: GEPA's two-stage program (answer, then rewrite); prompts: the 294 IFBench rows GEPA used",
        ),
        Workload(
            "hotpotqa",
            calls=4,
            context=Lengths(954, 0.22),
            outputs={"qwen3-8b-h100": Lengths(40, 0.8), "gpt-4o-mini-api": Lengths(35, 0.6)},
            speeds={"qwen3-8b-h100": 16, "gpt-4o-mini-api": 8},
            train=150,
            validation=20,
            source="calls: GEPA's program (two summaries, a query, an answer); prompts: 7 retrieved paragraphs",
        ),
        Workload(
            "hover",
            calls=4,
            context=Lengths(954, 0.22),
            outputs={"qwen3-8b-h100": Lengths(110, 0.8), "gpt-4o-mini-api": Lengths(50, 0.6)},
            speeds={"qwen3-8b-h100": 16, "gpt-4o-mini-api": 10},
            train=150,
            validation=30,
            source="calls: GEPA's program (two summaries, two queries); prompts: 7 retrieved paragraphs and a claim",
        ),
        Workload(
            "aime",
            calls=1,
            context=Lengths(80, 0.64),
            outputs={"qwen3-8b-h100": Lengths(350, 0.85), "gpt-4o-mini-api": Lengths(300, 0.7)},
            speeds={"qwen3-8b-h100": 30, "gpt-4o-mini-api": 30},
            train=45,
            validation=20,
            source="calls: one; prompts, 45 rows to train on: GEPA's problems of 2022-2024; spread: their solutions",
        ),
    )
}


def small(workload: Workload) -> Workload:
    """The same workload with only the share `SMALL` of its text, for slow models with a short context."""
    return replace(workload, context=replace(workload.context, median=workload.context.median * SMALL))


def rows_like(count: int, seed: int = 11) -> list[dict[str, JSON]]:
    """Generate ``count`` rows that need the rules of the house style as often as the workloads' own rows do."""
    return make_rows(18, per_example=4, overlap=0.25, rows=count, seed=seed)


class Pipeline:
    """A workload as a task, which sends every row's request with its other text in as many calls as the pipeline."""

    description: ClassVar[str] = "requests with a hidden house style, shaped like another data set"

    def __init__(self, workload: Workload, seed: int = 11) -> None:
        self.name = workload.name
        rng = random.Random(f"{workload.name}/{seed}")
        rows = rows_like(workload.train + workload.validation, seed)
        examples = [Example(str(row["key"]), self._asked(row, workload, rng)) for row in rows]
        self.data = Dataset(examples[: workload.train], examples[workload.train :])
        self._earlier = {
            example.id: tuple(_message(row, workload, rng) for _ in range(workload.calls - 1))
            for example, row in zip(examples, rows, strict=True)
        }
        self._last = InstructionFollowing(self.data, name=workload.name, seed_prompt=SEED_PROMPT)

    @staticmethod
    def _asked(row: Mapping[str, JSON], workload: Workload, rng: random.Random) -> dict[str, JSON]:
        return {**row, "prompt": _message(row, workload, rng)}

    def seed(self) -> Artifact:
        return self._last.seed()

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        system, notes = Message("system", artifact[COMPONENT]), ""
        for asked in self._earlier[example.id]:
            answer = await llm([system, Message("user", asked + notes)])
            notes = f"\n\nNotes so far:\n{answer[:CARRIED_CHARS]}"

        async def finish(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
            return await llm([*messages[:-1], Message("user", messages[-1].content + notes)], max_tokens=max_tokens)

        return await self._last.rollout(artifact, example, finish)


def _message(row: Mapping[str, JSON], workload: Workload, rng: random.Random) -> str:
    """The row's request, followed by unrelated text of a length that the workload draws."""
    return f"{row['prompt']}\n\nPassages:\n{_passage(round(workload.context.draw(rng)) * CHARS_PER_TOKEN, rng)}"


_WORDS = (
    "river archive winter station letter copper garden market bridge signal harbour engine village ladder window "
    "season council railway orchard museum printer valley painter compass chapter gallery merchant lantern quarry "
    "festival island bakery captain meadow theatre pebble tunnel reservoir province weaver"
).split()
_VERBS = ("borders", "follows", "supplies", "replaced", "belongs to", "looks over", "outlived", "was built beside")


def _passage(chars: int, rng: random.Random) -> str:
    """Text of this length that has nothing to do with any request."""
    sentences: list[str] = []
    length = 0
    while length < chars:
        first, second = rng.sample(_WORDS, 2)
        sentences.append(f"The {first} {rng.choice(_VERBS)} the {second} of {rng.randrange(1700, 2000)}.")
        length += len(sentences[-1]) + 1
    return " ".join(sentences)[:chars]
