"""The world `families`: a landscape of known basins, built to tell algorithms apart.

Programs are those of `flowevolve.tasks.families.catalog`, and the problem is `families`. A prompt that shows one
program and nothing else gets that program with other numbers, which is of the same family and so never passes its
ceiling. A reply can leave a family only if the prompt gives a reason: it asks for a program unlike others, has a plan,
advice or instructions that name another way, or shows a program that goes another way. `Chances` says how often that
succeeds.
"""

from __future__ import annotations

import random
from functools import partial

from flowevolve.prompts.abstracts import NAVIGATE_TITLE, SUMMARIZE_TITLE
from flowevolve.prompts.memory import COMPRESS_TITLE, REFLECT_TITLE
from flowevolve.prompts.plans import PLAN_TITLE
from flowevolve.prompts.programs import ADVICE_TITLE, META_TITLE
from flowevolve.prompts.slots import DIAGNOSE_TITLE
from flowevolve.sim.worlds.code.coder import Coder
from flowevolve.sim.worlds.code.prompt import ProgramRequest
from flowevolve.sim.worlds.code.requests import Edited
from flowevolve.sim.worlds.code.world import IN_JSON, IN_WORDS, CodeWorld
from flowevolve.sim.worlds.families.agents import advise, diagnose, instruct, plan
from flowevolve.sim.worlds.families.chances import Chances
from flowevolve.sim.worlds.families.coder import FamilyCoder
from flowevolve.sim.worlds.families.learning import compress, navigate, reflect, summarize
from flowevolve.sim.worlds.rules.params import PRESETS, RulesParams


class FamiliesWorld(CodeWorld):
    """The share of broken replies depends on the model's name and ``params``, as in the world `code`. Prompts that have
    no answer of their own here are answered as in that world.
    """

    def __init__(self, params: RulesParams = PRESETS["normal"], chances: Chances | None = None) -> None:
        super().__init__(params)
        self.chances = chances or Chances()
        self.in_words = {**IN_WORDS, ADVICE_TITLE: partial(advise, chances=self.chances), META_TITLE: instruct}
        self.in_json = {
            **IN_JSON,
            PLAN_TITLE: plan,
            DIAGNOSE_TITLE: partial(diagnose, chances=self.chances),
            REFLECT_TITLE: partial(reflect, chances=self.chances),
            COMPRESS_TITLE: compress,
            SUMMARIZE_TITLE: summarize,
            NAVIGATE_TITLE: partial(navigate, chances=self.chances),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.params!r}, {self.chances!r})"

    def edit(self, request: ProgramRequest, coder: Coder, rng: random.Random) -> Edited | None:
        return FamilyCoder(coder, self.chances, rng).edit(request)
