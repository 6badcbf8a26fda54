"""The world `rules`: a system prompt is better, the more rules of a hidden house style it states.

`RulesWorld.reply` is a pure function of the request and the random generator. It plays a task model, a reflection
model, a judge, an editor who merges versions, or a playbook's curator, as the request's text asks. Like a real model,
it sees nothing but that text: neither the task's rows nor their scores, which are in `flowevolve.tasks.house_style`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence, Set as AbstractSet

from flowevolve.core.model import ChatRequest
from flowevolve.prompts.instructions import REWRITING_TITLES
from flowevolve.prompts.reading.again import prompt_of
from flowevolve.prompts.reflection import (
    JUDGE_TITLE,
    MERGE_EDITS_TITLE,
    MERGE_TITLE,
    REFLECT_TITLE,
)
from flowevolve.sim.worlds.rules import playbook
from flowevolve.sim.worlds.rules.editor import judge, reflect, topic_of
from flowevolve.sim.worlds.rules.merger import merge, merge_edits
from flowevolve.sim.worlds.rules.params import PRESETS, ParamsWorld, RulesParams
from flowevolve.sim.worlds.rules.text import Reading, Statement, read_instruction
from flowevolve.sim.worlds.rules.writer import write_answer
from flowevolve.tasks.house_style import HOUSE_STYLE

__all__ = ["PRESETS", "RulesParams", "RulesWorld"]

_ANSWERS: Mapping[str, playbook.Responder] = {
    **dict.fromkeys((REFLECT_TITLE, *REWRITING_TITLES.values()), reflect),
    JUDGE_TITLE: judge,
    MERGE_TITLE: merge,
    MERGE_EDITS_TITLE: merge_edits,
}
"""The functions that answer prompts about instructions, by the first line of the prompt. Those for playbooks are in
`playbook.ANSWERS`.
"""
_LOWEST_OBEDIENCE = 0.5
_SUBJECTS = [Statement(rule).subject for rule in HOUSE_STYLE]
_RIVALS = {
    one: other for pair in zip(_SUBJECTS[::2], _SUBJECTS[1::2], strict=True) for one, other in (pair, pair[::-1])
}
"""For each subject, the subject whose rule gets in the way of its own rule."""


class RulesWorld(ParamsWorld):
    """A world in which a system prompt is good if it states the rules of a hidden house style."""

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        """The reply's text. Equal requests and equally seeded generators give equal texts."""
        asked = prompt_of(request.messages)
        title = asked.partition("\n")[0]
        responder = _ANSWERS.get(title) or playbook.ANSWERS.get(title)
        if responder is not None:
            return responder(asked, self.params, rng)
        instruction = "\n".join(message.content for message in request.messages if message.role == "system")
        return self._answer(instruction, asked, rng)

    def _answer(self, instruction: str, asked: str, rng: random.Random) -> str:
        kept = [rng.choice(said) for said, probability in self.said(instruction) if rng.random() < probability]
        return write_answer(topic_of(asked), kept, rng) + playbook.citation(instruction, kept)

    def said(self, instruction: str) -> Sequence[tuple[Sequence[Statement], float]]:
        """What an instruction says on each subject, and the probability that an answer keeps one of these."""
        reading = read_instruction(playbook.without_preamble(instruction))
        subjects = {said[0].subject for said in reading.by_subject}
        return [(said, self._obedience(said, subjects, reading)) for said in reading.by_subject]

    def _obedience(self, said: Sequence[Statement], subjects: AbstractSet[str], reading: Reading) -> float:
        """The probability that an answer keeps what an instruction says on a subject."""
        params = self.params
        excess = max(0, reading.lines - params.comfortable_lines)
        loss = params.fatigue * excess + params.noise_harm * reading.noise
        obedience = params.obedience * max(_LOWEST_OBEDIENCE, 1 - loss)
        return obedience * (1 - params.interference) if _RIVALS.get(said[0].subject) in subjects else obedience
