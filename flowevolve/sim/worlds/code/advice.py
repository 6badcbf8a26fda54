"""The advice that the world `code` gives: which kinds of changes set better programs apart from worse ones."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from flowevolve.prompts.programs import ShownProgram
from flowevolve.prompts.reading.fences import fence, labelled_blocks
from flowevolve.prompts.shipped import SHIPPED
from flowevolve.sim.worlds.code.compare import PHRASES, kinds_between
from flowevolve.sim.worlds.code.prompt import KINDS, all_programs, hinted, sections


def advise(prompt: str, rng: random.Random) -> str:
    """Advise the kinds of changes that lead from worse to better programs; guess if the prompt shows no such pair."""
    kinds = _kinds(all_programs(prompt), rng)
    return "\n".join(
        [f"What sets the better programs apart: {PHRASES[kinds[0]]}. Do more of that.", f"prefer: {', '.join(kinds)}"]
    )


def instruct(prompt: str, rng: random.Random) -> str:
    """Rewrite a prompt's instructions with another line on what to prefer, which half of the time is a guess."""
    kinds = [rng.choice(KINDS)] if rng.random() < 0.5 else _kinds(all_programs(prompt), rng)
    kept = [line for line in instructions(prompt).split("\n") if not hinted(line, "prefer")]
    return f"These instructions say more of what to try.\n\n{fence(chr(10).join([*kept, f'prefer: {kinds[0]}']))}"


def instructions(prompt: str) -> str:
    """The first unlabelled fenced text below a heading that speaks of instructions, else the default instructions."""
    for heading, text in sections(prompt).items():
        plain = [body for label, body in labelled_blocks(text) if not label]
        if "instruction" in heading.lower() and plain:
            return plain[0]
    return SHIPPED.text("program_how")


def _kinds(programs: Sequence[ShownProgram], rng: random.Random) -> list[str]:
    """The two most frequent kinds of changes from one program to the next better one; a guess if there are none."""
    scored = [(program.score, program) for program in programs if program.score is not None]
    ranked = [program for _, program in sorted(scored, key=lambda pair: pair[0])]
    differences = Counter(
        kind
        for worse, better in pairwise(ranked)
        if worse.score != better.score
        for kind in kinds_between(worse.program, better.program)[:1]
    )
    return [kind for kind, _ in differences.most_common(2)] or [rng.choice(KINDS)]
