"""The coder of the world `code`, which here also reads the prompts of other systems and answers in their forms.

All of them show programs in fenced blocks below Markdown headings, with scores nearby, and ask for SEARCH/REPLACE edits
or for a whole program in a fence; ShinkaEvolve wants either between tags. How a program is changed, and how often a
reply is broken, does not depend on the system that asks.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import replace

from flowevolve.core.model import ChatRequest, Message
from flowevolve.programs.edits import SEARCH_LINE
from flowevolve.prompts.programs import ShownProgram
from flowevolve.prompts.reading.again import prompt_of
from flowevolve.sim.worlds.code.coder import Coder
from flowevolve.sim.worlds.code.prompt import ProgramRequest
from flowevolve.sim.worlds.code.requests import Edited
from flowevolve.sim.worlds.code.world import KNOWN_TITLES, CodeWorld
from flowevolve.sim.worlds.rules.params import PRESETS

FILE = "program.py"
_BLOCK = re.compile(r"^```[^\n`]*\n(?P<body>.*?)\n?^```[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
_PARENT = re.compile(r"current program|program information|program to fix|^v1$|^base ", re.IGNORECASE)
"""Headings of the program to improve: OpenEvolve's and ShinkaEvolve's, SkyDiscover's, ShinkaEvolve's again, LEVI's."""
_SCORE = re.compile(r"(?:score|fitness)\b[^\n:`]*:\s*\**(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)", re.IGNORECASE)
_TAGS = "<NAME>"


class PeersCoder(CodeWorld):
    """Answers our prompts as `CodeWorld` does, and those of other systems likewise.

    Each answer draws from a random generator of its own, whatever seed the request names, so that equal requests get
    different answers, as from a model with a temperature. The program of answer ``endless_at`` never ends: its function
    ``entry`` begins with an endless loop.
    """

    def __init__(self, seed: int = 0, *, entry: str = "", endless_at: int | None = None) -> None:
        super().__init__(PRESETS["normal"])
        self._seed = seed
        self._entry = entry
        self._endless_at = endless_at
        self._answers = 0

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        self._answers += 1
        own = random.Random(f"{self._seed}/{self._answers}")
        if prompt_of(request.messages).partition("\n")[0] in KNOWN_TITLES:
            return super().reply(request, own)
        asked = "\n\n".join(message.content for message in request.messages if message.role != "assistant")
        answer = super().reply(replace(request, messages=(Message("user", asked),)), own)
        return _tagged(answer) if _TAGS in asked else answer

    def read(self, prompt: str) -> ProgramRequest:
        return super().read(prompt) if prompt.partition("\n")[0] in KNOWN_TITLES else read_prompt(prompt)

    def edit(self, request: ProgramRequest, coder: Coder, rng: random.Random) -> Edited | None:
        edited = super().edit(request, coder, rng)
        if edited is None or self._answers != self._endless_at:
            return edited
        return Edited(edited.old, {name: endless(text, self._entry) for name, text in edited.old.items()}, ["loops"])


def read_prompt(prompt: str) -> ProgramRequest:
    """What a prompt of another system asks for. There is no parent if it asks for a program unlike those it shows."""
    found = list(_shown(prompt))
    parents = [place for place, (heading, _) in enumerate(found) if _PARENT.search(heading)]
    parent = found[parents[-1]][1] if parents else None
    others = [program for place, (_, program) in enumerate(found) if place not in parents]
    return ProgramRequest(parent, others, "edits" if SEARCH_LINE in prompt else "whole", {})


def _shown(prompt: str) -> Iterator[tuple[str, ShownProgram]]:
    """The programs in a prompt, each with the heading above it.

    A score is in the heading, between the program and the next one, or before the program.
    """
    heading, end = "", 0
    blocks = list(_BLOCK.finditer(prompt))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        before = prompt[end : block.start()]
        headings = list(_HEADING.finditer(before))
        if headings:
            heading, before = headings[-1][1], before[headings[-1].end() :]
        end = block.end()
        after = _HEADING.split(prompt[end : following.start() if following else len(prompt)])[0]
        scores = [found for text in (heading, after, before) if (found := _SCORE.search(text))]
        if _is_program(block["body"]):
            yield heading, ShownProgram({FILE: block["body"]}, float(scores[0][1]) if scores else None)


def _is_program(text: str) -> bool:
    """Whether a block holds a program, not a signature, a place to fill in, or a message."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(node, ast.FunctionDef) for node in module.body)


def endless(text: str, entry: str) -> str:
    """The program with an endless loop as the first statement of the function ``entry``."""
    return re.sub(rf"^(def {entry}\(.*:)$", r"\1\n    while True:\n        pass", text, flags=re.MULTILINE)


def _tagged(answer: str) -> str:
    """An answer in the form that ShinkaEvolve wants."""
    said, _, program = answer.partition("\n\n")
    tag = "DIFF" if SEARCH_LINE in program else "CODE"
    return f"<NAME>\nchange\n</NAME>\n\n<DESCRIPTION>\n{said}\n</DESCRIPTION>\n\n<{tag}>\n{program}\n</{tag}>"
