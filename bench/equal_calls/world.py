"""Worlds of rules as gepa adapters, with a model that reflects and merges."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from statistics import fmean
from threading import Lock
from typing import ClassVar, Literal, TypedDict

from gepa.core.adapter import EvaluationBatch

from bench.equal_calls.timing import AT_ONCE, AT_ONCE_SECONDS, CALL_SECONDS, ROW_SECONDS

TRAIN, TEST = 40, 200
"""The number of rows for minibatches, and of held-out rows."""
SEED_PROMPT = "Do the task."
STATED = re.compile(r"Rule (\d+): (right|wrong)")
MISSING = re.compile(r"missing ([\d,]+)")
FENCED = re.compile(r"```\w*\n(.*?)```", re.DOTALL)


class Row(TypedDict):
    id: int
    needs: Sequence[int]


@dataclass(frozen=True, slots=True)
class World:
    """What a model does with prompts. Times are in seconds."""

    about: str
    rules: int = 18
    needed: int = 4
    """How many rules a row needs. Its score is the share of them that the model keeps."""
    validation: int = 20
    noise: float = 0.3
    """The probability that a reflection adds a useless note."""
    wrong: float = 0.2
    """The probability that a rule that it adds is wrong."""
    harm: float = 0.0
    """The share that each useless note takes off the chance that a rule is kept."""
    obedience: float = 0.95
    shuffles: bool = False
    """Whether a reflection writes all lines in another order."""
    merges: Literal["with losses", "not at all", "by failing"] = "with losses"
    """How the model answers merge prompts, which gepa does not send. With losses, one line in twenty is lost."""
    parts: int = 1
    """The components of a prompt. Each has its share of the rules, and others that it states count for nothing."""
    use_merge: bool = False
    """Whether both methods make gepa's own merges, too."""
    reflection_seconds: float = 0.06
    call_seconds: float = CALL_SECONDS
    row_seconds: float = ROW_SECONDS


WORLDS: Mapping[str, World] = {
    "plain": World("some notes are useless, some rules wrong"),
    "noisy": World("most reflections add a useless note, and two rules in five are wrong", noise=0.8, wrong=0.4),
    "harmful": World("useless notes do harm", noise=0.6, harm=0.03),
    "rewritten": World("each reflection writes the prompt anew", shuffles=True),
    "many rules": World("thirty rules, of which a row needs six", rules=30, needed=6, noise=0.5, wrong=0.3),
    "long validation": World("sixty rows for validation", validation=60),
    "short validation": World("eight rows for validation", validation=8),
    "disobedient": World("a rule that is stated is kept six times in ten", obedience=0.6),
    "slow reflection": World("a reflection takes five times as long", reflection_seconds=0.3),
    "no merges": World("asked to merge, the model repeats the prompt", merges="not at all"),
    "failing merges": World("asked to merge, the model fails", merges="by failing"),
    "parts": World("the prompt has three parts, and both make gepa's own merges", parts=3, use_merge=True),
    AT_ONCE: World("the adapter answers all rows of a call at once", call_seconds=AT_ONCE_SECONDS, row_seconds=0.0),
}


def drawn(*key: object) -> Random:
    """A random generator that depends only on the key."""
    return Random(hashlib.sha256(repr(key).encode()).hexdigest())


@dataclass
class RulesAdapter:
    """A gepa adapter of one world, which counts its metric calls."""

    world: World
    seed: int
    calls: int = 0
    propose_new_texts: ClassVar[None] = None
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def _popular(self) -> Sequence[float]:
        """How often each rule is needed, relative to the others."""
        return [1 / (1 + rule) ** 0.5 for rule in range(self.world.rules)]

    def rows(self, first: int, count: int) -> list[Row]:
        return [self._row(first + number) for number in range(count)]

    def _row(self, number: int) -> Row:
        random, needs = drawn("row", self.seed, number), set[int]()
        while len(needs) < self.world.needed:
            needs.add(random.choices(range(self.world.rules), self._popular)[0])
        return {"id": number, "needs": sorted(needs)}

    def _chances(self, prompt: str, row: Row) -> list[float]:
        """For each rule that a row needs, the probability that a model with this prompt keeps it."""
        stated: dict[int, list[bool]] = {}
        lines = prompt.splitlines()
        for found in map(STATED.match, lines):
            if found is not None:
                stated.setdefault(int(found[1]), []).append(found[2] == "right")
        notes = sum(line.startswith("Note") for line in lines)
        obedience = self.world.obedience * max(0.3, 1 - self.world.harm * notes)
        return [obedience * fmean(stated[rule]) if rule in stated else 0.0 for rule in row["needs"]]

    def seed_candidate(self) -> dict[str, str]:
        return dict.fromkeys(self._names, SEED_PROMPT)

    @cached_property
    def _names(self) -> Sequence[str]:
        """The components."""
        return ("prompt",) if self.world.parts == 1 else [f"part {number}" for number in range(self.world.parts)]

    def _is_of(self, rule: int, component: str) -> bool:
        return self._names[rule % self.world.parts] == component

    def _prompt(self, candidate: Mapping[str, str]) -> str:
        """What the model is told: all parts, without the rules that don't count there."""
        if self.world.parts == 1:
            return candidate["prompt"]
        return "\n".join(
            line
            for name, text in candidate.items()
            for line in text.splitlines()
            if (found := STATED.match(line)) is None or self._is_of(int(found[1]), name)
        )

    def held_out(self, candidate: Mapping[str, str]) -> float:
        """The expected score on held-out rows, which no optimizer sees."""
        prompt = self._prompt(candidate)
        return fmean(fmean(self._chances(prompt, row)) for row in self.rows(10_000, TEST))

    def evaluate(
        self, batch: list[Row], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[list[int], str]:
        with self._lock:
            self.calls += len(batch)
        time.sleep(self.world.call_seconds + self.world.row_seconds * len(batch))
        prompt = self._prompt(candidate)
        scores, traces = [], []
        for row in batch:
            random = drawn("answer", self.seed, prompt, row["id"])
            kept = [random.random() < chance for chance in self._chances(prompt, row)]
            missing = [rule for rule, is_kept in zip(row["needs"], kept, strict=True) if not is_kept]
            scores.append(fmean(kept))
            traces.append(missing)
        return EvaluationBatch(["answer"] * len(batch), scores, traces if capture_traces else None)

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[list[int], str],
        components_to_update: list[str],
    ) -> Mapping[str, Sequence[Mapping[str, str]]]:
        traces = eval_batch.trajectories or []
        return {
            name: [{"Feedback": _feedback([rule for rule in trace if self._is_of(rule, name)])} for trace in traces]
            for name in components_to_update
        }

    def reflect(self, prompt: object) -> str:
        """The model in the form that gepa calls. It reflects if the prompt has feedback, and merges otherwise.

        Raises:
            ValueError: in a world where merges fail.
        """
        time.sleep(self.world.reflection_seconds)
        text = str(prompt)
        random, blocks = drawn("reflection", self.seed, text), FENCED.findall(text)
        lines = _lines(blocks[0]) if blocks else []
        if "Feedback" in text:
            self._improve(lines, [int(rule) for rules in MISSING.findall(text) for rule in rules.split(",")], random)
        elif self.world.merges == "by failing":
            raise ValueError("I was asked for something else")
        elif self.world.merges == "with losses":
            every = dict.fromkeys(line for block in blocks for line in _lines(block))
            lines = [line for line in every if random.random() >= 0.05]
        return "```\n" + "\n".join(lines) + "\n```"

    def _improve(self, lines: list[str], missing: Sequence[int], random: Random) -> None:
        for rule in sorted(set(random.sample(missing, min(len(missing), 2)))):
            is_wrong = random.random() < self.world.wrong
            if not is_wrong:
                lines[:] = [line for line in lines if not line.startswith(f"Rule {rule}:")]
            lines.append(f"Rule {rule}: {'wrong' if is_wrong else 'right'}")
        if random.random() < self.world.noise:
            lines.append(f"Note {random.randrange(1000)}")
        if self.world.shuffles:
            random.shuffle(lines)


def _feedback(missing: Sequence[int]) -> str:
    return f"missing {','.join(map(str, missing))}" if missing else "all is well"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
