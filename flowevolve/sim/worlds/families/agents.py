"""The world `families` as agents that plan, advise, instruct, and take programs apart."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from flowevolve._util.json_types import JSON
from flowevolve.programs.parts import SlotName
from flowevolve.prompts.programs import OTHERS_HEADING
from flowevolve.prompts.reading.fences import fence
from flowevolve.prompts.slots import PARTS_HEADING
from flowevolve.sim.worlds.code.advice import instructions
from flowevolve.sim.worlds.code.prompt import all_programs, listed, parent_of, programs, sections
from flowevolve.sim.worlds.code.replies import in_json, wanted_count
from flowevolve.sim.worlds.families.chances import Chances
from flowevolve.sim.worlds.families.coder import member_of
from flowevolve.sim.worlds.families.hints import hint
from flowevolve.sim.worlds.families.seeing import new_ways, seen
from flowevolve.tasks.families.catalog import PARTS, SEED, WAYS

_COST = re.compile(r"the numbers in `(\w+)` cost (\d+(?:\.\d+)?)")
_SLOTS: Mapping[str, SlotName] = {"copies": "core_logic", "place": "perf_patch"}
"""The slot of each part; everything else in a program goes to ``misc``."""


def plan(prompt: str, rng: random.Random) -> str:
    """Write plans, each for another way: first the ways that the shown program does not go, then those that it does."""
    parts = sections(prompt)
    program = parent_of(parts)
    shown = (None if program is None else member_of(program)) or SEED
    others = [name for name in WAYS if name not in shown.family]
    ways = [*rng.sample(others, len(others)), *rng.sample(shown.family, len(shown.family))]
    return in_json("Each goes its own way.", [_plan(name) for name in ways[: wanted_count(parts, 5)]])


def _plan(name: str) -> str:
    return (
        f"Write `{WAYS[name].part}` by {name} and keep the rest plain: read the loads once, keep in memory only what "
        f"the next step needs, and let time grow no faster than in the program shown.\n{hint('try', [name])}"
    )


def advise(prompt: str, rng: random.Random, chances: Chances) -> str:
    """Advise the ways of the best program, and one way that none of the programs goes."""
    found = [
        (shown.score, member)
        for shown in all_programs(prompt)
        if shown.score is not None and (member := seen(shown, chances, rng)) is not None
    ]
    if not found:
        return "Nothing sets these programs apart."
    _, best = max(found, key=lambda each: each[0])
    gone = {name for _, member in found for name in member.family}
    untried = [name for name in WAYS if name not in gone]
    lines = ["What the best one does is worth taking over.", hint("try", best.family)]
    if untried:
        lines += ["Nobody has gone this way so far.", hint("try", [rng.choice(untried)])]
    return "\n".join(lines)


def instruct(prompt: str, rng: random.Random) -> str:
    """Rewrite a prompt's instructions so that they name a way that the program shown does not go."""
    program = parent_of(sections(prompt))
    member = None if program is None else member_of(program)
    ways = [name for name in WAYS if member is None or name not in member.family]
    kept = [line for line in instructions(prompt).split("\n") if not line.startswith("try: ")]
    text = "\n".join([*kept, hint("try", [rng.choice(ways)])])
    return f"These instructions name a way that was not gone.\n\n{fence(text)}"


def diagnose(prompt: str, rng: random.Random, chances: Chances) -> str:
    """Say which parts are to be improved: the one whose numbers cost more according to the feedback (an agent that
    overlooks this guesses), and each part in which a better program goes another way.
    """
    parts = sections(prompt)
    names = listed(parts.get(PARTS_HEADING, ""))
    program = parent_of(parts)
    if program is None or not names:
        return "There is no program to take apart."
    costs: dict[str, float] = dict.fromkeys(PARTS, 0.0)
    for name, cost in _COST.findall(program.feedback):
        costs[name] = costs.get(name, 0.0) + float(cost)
    guessed = not any(costs.values()) or rng.random() < chances.overlooks
    weak: set[str] = {rng.choice(PARTS) if guessed else max(PARTS, key=lambda part: costs[part])}
    ours = member_of(program)
    for better in programs(parts.get(OTHERS_HEADING, ""))[:1]:
        theirs = seen(better, chances, rng)
        if ours is not None and theirs is not None:
            weak |= {WAYS[name].part for name in new_ways(ours, theirs)}
    rest = [name for name in names if name not in _SLOTS]
    found: list[JSON] = [_verdict(slot, [name], name in weak) for name, slot in _SLOTS.items() if name in names]
    return in_json("The parts and what they are for.", {"slots": [*found, *([_verdict("misc", rest)] if rest else [])]})


def _verdict(slot: SlotName, names: Sequence[str], weak: bool = False) -> JSON:
    said = "most of what is lost is lost here" if weak else "it does what it is for"
    status = "improve" if weak else "keep"
    return {"slot": slot, "parts": [*names], "status": status, "why": f"{', '.join(names)}: {said}."}
