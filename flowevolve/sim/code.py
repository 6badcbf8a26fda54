"""The world `code`: a coder without understanding, which edits real programs.

`CodeWorld.reply` is a pure function of the request and the random generator. It changes the program that the prompt
shows as a mutation would (numbers, operators, statements, parts of the other programs), so scores truly differ, and
what is selected by score truly improves; but no idea is behind any change.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from flowevolve.llm.types import ChatRequest
from flowevolve.programs.prompts import ADVICE_TITLE, META_TITLE
from flowevolve.sim.code_advice import advise, instruct
from flowevolve.sim.code_prompt import Asked, read_prompt
from flowevolve.sim.code_reply import broken, write_reply
from flowevolve.sim.coder import AVOIDED, PREFERRED, Coder, Work, coder_of, edit_files
from flowevolve.sim.rules_params import PRESETS, RulesParams

_RESTRUCTURED = {"constants": 1.0, "loops": 3.0, "statements": 3.0, "growth": 4.0}
"""Weights of kinds of changes where another program altogether is asked for: another structure, not other numbers. What
only turns a program into its opposite (an operator, a function for another) is no other method.
"""
_MANY = (3, 6)
"""Changes then, at least and at most."""
_FAR = (-2.0, 0.0)
"""How far numbers may go then, as `Coder.steps`."""
_MOST_BROKEN = 0.5


class CodeWorld:
    """How good the coder is, a word in the model's name says (`flowevolve.sim.coder.CODERS`).

    Of ``params``, those of the rules world, it has ``unparsable``: by it the share of broken replies is scaled.
    """

    name = "code"

    def __init__(self, params: RulesParams = PRESETS["normal"]) -> None:
        self.params = params
        self._clumsiness = params.unparsable / PRESETS["normal"].unparsable

    def __repr__(self) -> str:
        return f"CodeWorld({self.params!r})"

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        """The reply's text. Equal requests and equally seeded generators give equal texts."""
        prompt = request.messages[-1].content
        if prompt.startswith(ADVICE_TITLE):
            return advise(prompt, rng)
        if prompt.startswith(META_TITLE):
            return instruct(prompt, rng)
        return self._program(read_prompt(prompt), coder_of(request.model), rng)

    def _program(self, asked: Asked, coder: Coder, rng: random.Random) -> str:
        if asked.parent is not None:
            old, others = asked.parent.files, [seen.files for seen in asked.others]
            work = Work(_weighed(coder.weights, asked, bool(others)), rng.choice(coder.changes), coder.steps)
        elif asked.others:
            working = [seen for seen in asked.others if seen.score is not None]
            old, others = rng.choice(working or asked.others[:1]).files, []
            work = Work(_RESTRUCTURED, rng.randint(*_MANY), _FAR)
        else:
            return "There is no program to work on."
        new, kinds = edit_files(old, others, work, rng)
        reply = write_reply(old, new, asked.form, f"Changed: {', '.join(kinds) or 'nothing'}.")
        share = min(_MOST_BROKEN, coder.broken * self._clumsiness)
        return broken(reply, asked.form, rng) if rng.random() < share else reply


def _weighed(weights: Mapping[str, float], asked: Asked, others: bool) -> dict[str, float]:
    """The weights of kinds of changes, as hints have them; without other programs there is nothing to cross with."""
    factors = dict.fromkeys(asked.prefer, PREFERRED) | dict.fromkeys(asked.avoid, AVOIDED)
    return {kind: weight * factors.get(kind, 1.0) for kind, weight in weights.items() if others or kind != "crossover"}
