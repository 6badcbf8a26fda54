"""What the world `code` says of programs: which kind of change sets the better ones apart."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from flowevolve.programs.prompts import DEFAULT_INSTRUCTIONS
from flowevolve.prompts import fence, labelled_blocks
from flowevolve.sim.code_prompt import KINDS, Seen, all_programs, hinted, sections
from flowevolve.sim.code_source import Source, numbers, parse

_WORDS: Mapping[str, str] = {
    "constants": "other constants",
    "operators": "other operators",
    "calls": "other functions called",
    "loops": "loops that run otherwise",
    "statements": "statements moved, doubled or left out",
    "crossover": "parts of other programs",
    "growth": "terms that were added",
}


def advise(prompt: str, rng: random.Random) -> str:
    """Advice that names the kinds of changes between programs of which one is better; a guess where none are shown."""
    kinds = _kinds(all_programs(prompt), rng)
    return "\n".join(
        [f"What sets the better programs apart: {_WORDS[kinds[0]]}. Do more of that.", f"prefer: {', '.join(kinds)}"]
    )


def instruct(prompt: str, rng: random.Random) -> str:
    """The instructions of a prompt, in a fence, with another line that says what to prefer: a guess now and then."""
    guess = rng.random() < 0.5
    kinds = [rng.choice(KINDS)] if guess else _kinds(all_programs(prompt), rng)
    kept = [line for line in _instructions(prompt).split("\n") if not hinted(line, "prefer")]
    return f"These instructions say more of what to try.\n\n{fence(chr(10).join([*kept, f'prefer: {kinds[0]}']))}"


def _instructions(prompt: str) -> str:
    """The first fenced text without a label below a heading that speaks of instructions, else those by default."""
    for heading, text in sections(prompt).items():
        plain = [body for label, body in labelled_blocks(text) if not label]
        if "instruction" in heading.lower() and plain:
            return plain[0]
    return DEFAULT_INSTRUCTIONS


def _kinds(programs: Sequence[Seen], rng: random.Random) -> list[str]:
    """The two most frequent kinds of differences between a program and the next better one."""
    scored = [(seen.score, seen) for seen in programs if seen.score is not None]
    ranked = [seen for _, seen in sorted(scored, key=lambda pair: pair[0])]
    differences = Counter(
        kind
        for worse, better in pairwise(ranked)
        if worse.score != better.score
        for kind in _differences(worse.files, better.files)
    )
    return [kind for kind, _ in differences.most_common(2)] or [rng.choice(KINDS)]


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    found: list[str] = []
    for name in old:
        ours, theirs = parse(old[name]), parse(new.get(name, ""))
        if ours is not None and theirs is not None and ours.text != theirs.text:
            found.append(_difference(ours, theirs))
    return found


def _difference(old: Source, new: Source) -> str:
    """The first of the measures, from what is large to what is small, in which two programs differ."""
    if _shape(old, ast.stmt) != _shape(new, ast.stmt):
        loops = (ast.For, ast.While)
        return "loops" if _count(old, loops) != _count(new, loops) else "statements"
    if _count(old, (ast.BinOp,)) != _count(new, (ast.BinOp,)):
        return "growth"
    if _shape(old, ast.operator) != _shape(new, ast.operator) or _shape(old, ast.cmpop) != _shape(new, ast.cmpop):
        return "operators"
    if len(numbers(old.tree)) == len(numbers(new.tree)) and _names(old) == _names(new):
        return "constants"
    return "calls"


def _shape(source: Source, kind: type[ast.AST]) -> list[str]:
    return [type(node).__name__ for node in ast.walk(source.tree) if isinstance(node, kind)]


def _count(source: Source, kinds: tuple[type[ast.AST], ...]) -> int:
    return sum(isinstance(node, kinds) for node in ast.walk(source.tree))


def _names(source: Source) -> list[str]:
    return [node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)]
