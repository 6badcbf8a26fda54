"""The world `code` as agents that plan programs and that diagnose the parts of programs."""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping, Sequence

from flowevolve._util.json_types import JSON
from flowevolve.programs.parts import REST, SlotName
from flowevolve.prompts.programs import OTHERS_HEADING
from flowevolve.prompts.slots import PARTS_HEADING
from flowevolve.sim.worlds.code.prompt import KINDS, listed, parent_of, programs, sections
from flowevolve.sim.worlds.code.replies import hint, in_json, in_words, wanted_count
from flowevolve.sim.worlds.code.source import parse
from flowevolve.sim.worlds.code.traits import definitions, loops_in, traits

_DOUBTED = 0.25
"""How often a part is to be improved although there is no reason for it."""
_QUICK = frozenset({"cache", "lru_cache", "array", "zeros", "heappush", "heappop", "bisect", "deque"})


def plan(prompt: str, rng: random.Random) -> str:
    """Write plans that rest on different kinds of changes and begin with different parts of the program."""
    parts = sections(prompt)
    program = parent_of(parts)
    names = [*traits(program.program)] if program is not None else []
    kinds = [kind for kind in KINDS if kind != "crossover"]
    pairs = [(one, other) for one in kinds for other in kinds if one != other]
    chosen = rng.sample(pairs, min(wanted_count(parts, 5), len(pairs)))
    return in_json("Each goes its own way.", [_plan(each, rng.choice(names) if names else "", rng) for each in chosen])


def _plan(kinds: Sequence[str], part: str, rng: random.Random) -> str:
    begin = f"Begin with `{part}`" if part else "Begin with a plain version"
    careful = rng.choice(("check each part before the next", "leave the order of the rest as it is"))
    return (
        f"{begin} and build the method on {in_words(kinds[:1])}: carry that through all of the program, then turn to "
        f"{in_words(kinds[1:])} where it still loses. Read the input once, keep in memory only what the next step "
        f"needs, and {careful}. Time and memory grow no faster than in the program shown.\n{hint('prefer', kinds)}"
    )


def diagnose(prompt: str, rng: random.Random) -> str:
    """Say for each part what it is for, and whether it is to be kept or improved.

    To be improved are the part with the most loops, the parts in which a better program differs, and some at random.
    """
    parts = sections(prompt)
    names = listed(parts.get(PARTS_HEADING, ""))
    program = parent_of(parts)
    if program is None or not names:
        return "There is no program to take apart."
    nodes = _definitions(program.program)
    called = {each.id for node in nodes.values() for each in ast.walk(node) if isinstance(each, ast.Name)}
    loops = {name: loops_in(nodes[name]) if name in nodes else -1 for name in names}
    worst = {max(names, key=lambda name: loops[name])}
    for better in programs(parts.get(OTHERS_HEADING, ""))[:1]:
        ours, theirs = traits(program.program), traits(better.program)
        worst |= {name for name in names if name in theirs and ours.get(name) != theirs[name]}
    worst |= {name for name in names if rng.random() < _DOUBTED}
    slots: dict[tuple[SlotName, bool], list[str]] = {}
    for name in names:
        slot = _kind_of_part(nodes.get(name), name.split(":")[-1] in called)
        slots.setdefault((slot, name in worst), []).append(name)
    found: list[JSON] = [_verdict(slot, bad, each, loops) for (slot, bad), each in slots.items()]
    return in_json("The parts and what they are for.", {"slots": found})


def _definitions(files: Mapping[str, str]) -> dict[str, ast.stmt]:
    """The functions and classes of all files by the names of their parts."""
    return {
        name if len(files) == 1 else f"{file}:{name}": node
        for file, text in files.items()
        if (source := parse(text)) is not None
        for name, node in definitions(source).items()
    }


def _kind_of_part(node: ast.stmt | None, called: bool) -> SlotName:
    if node is None:
        return "misc"
    names = {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in ast.walk(node)}
    if names & _QUICK:
        return "perf_patch"
    if loops_in(node):
        return "core_logic"
    if not called:
        return "io_parsing"
    return "edge_case" if any(isinstance(each, ast.If | ast.IfExp) for each in ast.walk(node)) else "misc"


def _verdict(slot: SlotName, bad: bool, names: Sequence[str], loops: Mapping[str, int]) -> JSON:
    count = sum(max(0, loops[name]) for name in names)
    said = f"{', '.join(names)}: {count} loops in all"
    verdict = "which is where the score can still be gained" if bad else "which does what it is for"
    return {
        "slot": slot,
        "parts": [*names],
        "status": "improve" if bad else "keep",
        "why": f"{said.replace(REST, 'what is outside of functions')}, {verdict}.",
    }
