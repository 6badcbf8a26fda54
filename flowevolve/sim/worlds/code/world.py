"""The world `code`: a coder that edits real programs at random, and agents that count what its changes did.

`CodeWorld.reply` is a pure function of the request and the random generator. It mutates the program that the prompt
shows (its numbers, operators and statements, or parts taken from the other programs). Scores of the resulting programs
truly differ, and selection by score truly improves them, but no understanding is behind any change.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from flowevolve.core.model import ChatRequest
from flowevolve.prompts.abstracts import EXEMPLARS_TITLE, NAVIGATE_TITLE, SUMMARIZE_TITLE
from flowevolve.prompts.memory import COMPRESS_TITLE, DISTILL_TITLE, QUERIES_TITLE, REFLECT_TITLE
from flowevolve.prompts.novelty import NOVELTY_TITLE
from flowevolve.prompts.plans import IMPLEMENT_TITLE, PLAN_TITLE
from flowevolve.prompts.programs import ADVICE_TITLE, CHANGE_TITLES, META_TITLE, SEED_TITLE, SHIFT_TITLE
from flowevolve.prompts.reading.again import prompt_of
from flowevolve.prompts.slots import DIAGNOSE_TITLE
from flowevolve.sim.worlds.code.advice import advise, instruct
from flowevolve.sim.worlds.code.agents_abstracts import exemplars, navigate, summarize
from flowevolve.sim.worlds.code.agents_memory import compress, distill, queries, reflect
from flowevolve.sim.worlds.code.agents_novelty import judge
from flowevolve.sim.worlds.code.agents_parts import diagnose, plan
from flowevolve.sim.worlds.code.coder import Coder, coder_of
from flowevolve.sim.worlds.code.prompt import ProgramRequest, read_prompt
from flowevolve.sim.worlds.code.replies import garbled
from flowevolve.sim.worlds.code.requests import Edited, edit_program
from flowevolve.sim.worlds.code.writing import broken, write_reply
from flowevolve.sim.worlds.rules.params import PRESETS, ParamsWorld

Responder = Callable[[str, random.Random], str]

IN_WORDS: Mapping[str, Responder] = {ADVICE_TITLE: advise, META_TITLE: instruct, NOVELTY_TITLE: judge}
IN_JSON: Mapping[str, Responder] = {
    PLAN_TITLE: plan,
    DIAGNOSE_TITLE: diagnose,
    REFLECT_TITLE: reflect,
    COMPRESS_TITLE: compress,
    QUERIES_TITLE: queries,
    DISTILL_TITLE: distill,
    SUMMARIZE_TITLE: summarize,
    NAVIGATE_TITLE: navigate,
    EXEMPLARS_TITLE: exemplars,
}
"""The functions that answer prompts, by the first line of the prompt. All other prompts ask for programs."""
KNOWN_TITLES = frozenset((*IN_WORDS, *IN_JSON, *CHANGE_TITLES.values(), SEED_TITLE, SHIFT_TITLE, IMPLEMENT_TITLE))
"""The first lines of all prompts that this world answers."""
_MOST_BROKEN = 0.5


class CodeWorld(ParamsWorld):
    """A word in the model's name says how good the coder is (`flowevolve.sim.worlds.code.coder.CODERS`).

    ``params`` are those of the world `rules`, of which only ``unparsable`` is used: it scales the share of broken
    replies.
    """

    in_words: Mapping[str, Responder] = IN_WORDS
    in_json: Mapping[str, Responder] = IN_JSON

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        """The reply's text. Equal requests and equally seeded generators give equal texts."""
        prompt = prompt_of(request.messages)
        title = prompt.partition("\n")[0]
        if title in self.in_words:
            return self.in_words[title](prompt, rng)
        if title in self.in_json:
            answer = self.in_json[title](prompt, rng)
            return garbled(answer, rng) if self._makes_mistake(request.model, rng) else answer
        return self._program(prompt, request.model, rng)

    def _program(self, prompt: str, model: str, rng: random.Random) -> str:
        request = self.read(prompt)
        edited = self.edit(request, coder_of(model), rng)
        if edited is None:
            return "There is no program to work on."
        reply = write_reply(edited.old, edited.new, request.form, f"Changed: {', '.join(edited.kinds) or 'nothing'}.")
        return broken(reply, request.form, rng) if self._makes_mistake(model, rng) else reply

    def read(self, prompt: str) -> ProgramRequest:
        """What a prompt for a program asks for."""
        return read_prompt(prompt)

    def edit(self, request: ProgramRequest, coder: Coder, rng: random.Random) -> Edited | None:
        """What the coder makes of a request for a program; None if the prompt shows no program."""
        return edit_program(request, coder, rng)

    def _makes_mistake(self, model: str, rng: random.Random) -> bool:
        clumsiness = self.params.unparsable / PRESETS["normal"].unparsable
        return rng.random() < min(_MOST_BROKEN, coder_of(model).broken * clumsiness)
