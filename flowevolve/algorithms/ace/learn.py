"""ACE's generator and reflector (arXiv 2510.04618, §3): answer a sample with the playbook, learn from the result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from functools import partial

from flowevolve.algorithms.ace.payloads import Answered, Learned, Lesson, Sample
from flowevolve.algorithms.ace.playbook import Bullet, render
from flowevolve.algorithms.ace.playbook_reading import Reader, cited_bullets, question_of
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item
from flowevolve.core.pool import Candidate
from flowevolve.core.task import Rollout
from flowevolve.prompts.playbook import CheckedAnswer, Reflection, lesson_prompt, parse_lesson
from flowevolve.stages import Rollouts, try_asking
from flowevolve.stages.comments import commented


@dataclass(frozen=True)
class Generate:
    """Answers the sample with the playbook as it is now."""

    rollouts: Rollouts
    reader: Reader

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        name = item.expect(Sample).example_id
        version, bullets = self.reader.now(context)
        artifact = self.reader.artifact(bullets, context, cite=True)
        rollout = (await self.rollouts.run(Candidate(f"playbook@{version}", artifact), [name], "train", context))[0]
        used = cited_bullets(rollout, self.reader.shown(bullets))
        yield Emit(Answered(name, rollout, used), version=version)


@dataclass(frozen=True)
class Reflect:
    """Reflects on a wrong answer and has the sample tried again, up to ``max_rounds`` times. Reflects on a right answer
    once, to tag the bullets that were used.
    """

    rollouts: Rollouts
    reader: Reader
    max_rounds: int

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        answered = item.expect(Answered)
        notes = _Notes()
        rollout, used = answered.rollout, answered.used
        for number in range(1, self.max_rounds + 1):
            right = rollout.score.passed
            reflection = await _reflect(rollout, used, context)
            notes.take(reflection, used)
            if right or reflection is None:
                break
            rollout, used = await self._again(answered.example_id, reflection, number, context)
            if rollout.score.passed:
                break
        lesson = Lesson(answered.example_id, tuple(notes.lessons), notes.reads, notes.diagnosis)
        yield Emit(Learned(lesson, dict(notes.counts), answered.rollout.score.passed, rollout.score.passed))

    async def _again(
        self, name: str, reflection: Reflection, number: int, context: StageContext
    ) -> tuple[Rollout, tuple[Bullet, ...]]:
        """Answer the sample once more, with the playbook as it is now and the reflection on the last answer."""
        version, bullets = self.reader.now(context, f"try {number}")
        artifact = self.reader.artifact(bullets, context, cite=True, reflection=reflection.in_words)
        candidate = Candidate(f"playbook@{version}", artifact)
        rollout = await self.rollouts.again(candidate, name, "train", context, str(number))
        return rollout, cited_bullets(rollout, self.reader.shown(bullets))


@dataclass
class _Notes:
    """What the rounds of one sample have taught."""

    lessons: dict[str, None] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))
    reads: dict[str, str] = field(default_factory=dict)
    diagnosis: str = ""
    """The first diagnosis, because it is about the answer that was given without help."""

    def take(self, reflection: Reflection | None, used: Sequence[Bullet]) -> None:
        self.reads.update((bullet.id, bullet.digest) for bullet in used)
        if reflection is None:
            return
        self.diagnosis = self.diagnosis or reflection.diagnosis
        self.lessons.update(dict.fromkeys(reflection.lessons))
        for name, tag in reflection.tags.items():
            helpful, harmful = self.counts[name]
            self.counts[name] = helpful + (tag == "helpful"), harmful + (tag == "harmful")


async def _reflect(rollout: Rollout, used: Sequence[Bullet], context: StageContext) -> Reflection | None:
    """One reflection call; None if the call fails or its reply can't be read."""
    (rollout,) = commented([rollout], context)
    score = rollout.score
    checked = CheckedAnswer(
        question_of(rollout), rollout.output, score.feedback, score.value, score.passed, render(used)
    )
    prompt = lesson_prompt(context.templates, checked)
    template = context.templates["lesson"].text
    read = partial(parse_lesson, known={bullet.id for bullet in used}, template=template)
    return await try_asking(context, "reflection", prompt, read, agent="reflect")
