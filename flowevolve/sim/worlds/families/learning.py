"""The world `families` as agents that learn from changes: they describe, reflect, shorten memories, and guide."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from statistics import fmean

from flowevolve._util.json_types import JSON
from flowevolve.prompts.abstracts import PARENT_HEADING, PROGRAMS_HEADING
from flowevolve.prompts.memory import (
    CHILD_HEADING,
    DIRECTIONS_KEPT,
    LESSONS_KEPT,
    Digest,
    Direction,
)
from flowevolve.prompts.reading.fences import labelled_blocks
from flowevolve.sim.worlds.code.agents_abstracts import all_steps
from flowevolve.sim.worlds.code.agents_memory import notes_in, outcome_of
from flowevolve.sim.worlds.code.prompt import named_programs, parent_of, programs, sections
from flowevolve.sim.worlds.code.replies import in_json
from flowevolve.sim.worlds.families.chances import Chances
from flowevolve.sim.worlds.families.coder import member_of
from flowevolve.sim.worlds.families.hints import hint
from flowevolve.sim.worlds.families.seeing import directions, in_words, new_ways, seen
from flowevolve.tasks.families.catalog import WAYS

_GUIDED = 2
"""The most numbers that guidance gives a direction for."""


def summarize(prompt: str, rng: random.Random) -> str:
    """Describe a program part by part: its ways and its numbers, and which of them its parent did not have."""
    parts = sections(prompt)
    program = parent_of(parts)
    member = None if program is None else member_of(program)
    before = "\n".join(body for _, body in labelled_blocks(parts.get(PARENT_HEADING, "")))
    said = ["a program of no known way"] if member is None else [in_words(piece) for piece in member.pieces]
    value: JSON = {
        "inherited": [each for each in said if each in before],
        "new": [each for each in said if each not in before],
        "abstract": f"It works in two parts. {'; '.join(said)}.",
    }
    return in_json("In words:", value)


def reflect(prompt: str, rng: random.Random, chances: Chances) -> str:
    """Tell which way or which numbers changed, and whether the score rose with it."""
    parts = sections(prompt)
    before, after = parent_of(parts), next(iter(programs(parts.get(CHILD_HEADING, ""))), None)
    if before is None or after is None:
        return "There are no two programs to compare."
    parent, child = seen(before, chances, rng), seen(after, chances, rng)
    ways = [] if parent is None or child is None else new_ways(parent, child)
    moved = {} if parent is None or child is None else directions(parent, child)
    outcome = outcome_of(before, after) if ways or moved else "neutral"
    what = " and ".join([*ways, *(f"{name} {'raised' if sign > 0 else 'lowered'}" for name, sign in moved.items())])
    lines = [f"{what or 'No change that can be told'}: {outcome}."]
    if outcome != "neutral":
        better = 1 if outcome == "success" else -1
        lines += [hint("try" if better > 0 else "shun", ways)] if ways else []
        lines += [hint("raise" if sign * better > 0 else "lower", [name]) for name, sign in moved.items()]
    value: JSON = {"direction": what or "no change at all", "outcome": outcome, "lesson": "\n".join(lines)}
    return in_json("I compared the two versions.", value)


def compress(prompt: str, rng: random.Random) -> str:
    """Merge equal notes: directions are counted, and of the lessons the latest are kept."""
    notes = notes_in(prompt)
    tried: Counter[Direction] = Counter()
    for each, count in notes.directions:
        tried[each] += count
    latest = [*dict.fromkeys(reversed(notes.lessons))][:LESSONS_KEPT]
    kept = Digest(tuple(tried.most_common(DIRECTIONS_KEPT)), tuple(reversed(latest)))
    return in_json("What was alike is one entry now.", kept.to_json())


def navigate(prompt: str, rng: random.Random, chances: Chances) -> str:
    """Guide by the steps shown: the way and the numbers that came with gains, those with losses, and an untried way."""
    parts = sections(prompt)
    shown = named_programs(parts.get(PROGRAMS_HEADING, ""))
    members = {name: member for name, each in shown.items() if (member := seen(each, chances, rng)) is not None}
    steps = all_steps(parts)
    largest = max((abs(change) for _, _, change in steps if change is not None), default=0.0) or 1.0
    ways: defaultdict[str, list[float]] = defaultdict(list)
    numbers: Counter[str] = Counter()
    for old, new, change in steps:
        parent, child = members.get(old), members.get(new)
        if parent is None or child is None or change is None:
            continue
        for name in new_ways(parent, child):
            ways[name].append(change / largest)
        for name, sign in directions(parent, child).items():
            numbers[name] += round(100 * sign * change / largest)
    worth = {name: fmean(changes) for name, changes in ways.items()}
    gone = {name for member in members.values() for name in member.family}
    untried = [name for name in WAYS if name not in gone]
    lines = ["Followed through, these steps say what is worth trying."]
    if good := [name for name in worth if worth[name] > 0]:
        lines.append(hint("try", [max(good, key=lambda name: worth[name])]))
    if untried:
        lines += ["Nobody has gone this way so far.", hint("try", [rng.choice(untried)])]
    if bad := [name for name in worth if worth[name] < 0]:
        lines.append(hint("shun", [min(bad, key=lambda name: worth[name])]))
    for name, votes in sorted(numbers.items(), key=lambda each: -abs(each[1]))[:_GUIDED]:
        lines += [hint("raise" if votes > 0 else "lower", [name])] if votes else []
    return in_json("I followed each trajectory.", {"guidance": "\n".join(lines)})
