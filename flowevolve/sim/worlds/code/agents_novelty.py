"""How the world `code` judges whether a program is new: by its syntax, in which comments and layout don't count."""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping

from flowevolve.programs.names import parsed
from flowevolve.prompts.novelty import NEW, SAME
from flowevolve.prompts.programs import OTHERS_HEADING
from flowevolve.sim.worlds.code.prompt import parent_of, programs, sections


def judge(prompt: str, rng: random.Random) -> str:
    """The verdict on the program of a prompt."""
    parts = sections(prompt)
    program = parent_of(parts)
    others = [_syntax(each.program) for each in programs(parts.get(OTHERS_HEADING, ""))]
    same = program is not None and _syntax(program.program) in others
    return f"Verdict: {SAME if same else NEW}"


def _syntax(program: Mapping[str, str]) -> list[str]:
    """A text for each file that is equal where the syntax is."""
    trees = {name: parsed(text) for name, text in program.items()}
    return [program[name] if tree is None else ast.dump(tree) for name, tree in trees.items()]
