"""The world `code` as agents with a memory: it reflects, compresses notes, asks queries and distills experience."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from flowevolve._util.json_types import JSON
from flowevolve.prompts.memory import (
    CHILD_HEADING,
    DEGRADING_HEADING,
    DIRECTIONS_KEPT,
    DISTILLED,
    IMPROVING_HEADING,
    LESSONS_KEPT,
    MEMORY_HEADING,
    Digest,
    Direction,
)
from flowevolve.prompts.programs import ShownProgram
from flowevolve.prompts.reading.fences import labelled_blocks
from flowevolve.sim.worlds.code.compare import PHRASES, kinds_between
from flowevolve.sim.worlds.code.prompt import KINDS, hinted, parent_of, programs, sections
from flowevolve.sim.worlds.code.replies import hint, in_json, in_words, wanted_count
from flowevolve.sim.worlds.code.traits import traits

_TOLD = 2
"""The most kinds of changes that a direction or a lesson names."""
_STEP = re.compile(r"^### Step \d+$", re.MULTILINE)
_CHANGE = re.compile(r"^Change: (\S+)$", re.MULTILINE)
_LAST_WORDS = 80
_Step = tuple[float, tuple[str, ...]]
"""The change of the score in a step, and the kinds of changes that its lesson names."""


def reflect(prompt: str, rng: random.Random) -> str:
    """Tell which kinds of changes lie between two programs, and whether the score rose with them."""
    parts = sections(prompt)
    parent, child = parent_of(parts), next(iter(programs(parts.get(CHILD_HEADING, ""))), None)
    if parent is None or child is None:
        return "There are no two programs to compare."
    kinds = kinds_between(parent.program, child.program)[:_TOLD]
    outcome = outcome_of(parent, child) if kinds else "neutral"
    direction = in_words(kinds) or "no change at all"
    where = _where(parent, child)
    match outcome:
        case "success":
            lesson = f"{direction} in {where} raised the score: there is more to gain that way, so go on with it."
            lines = [lesson, hint("prefer", kinds)]
        case "failed":
            lines = [f"{direction} in {where} {_damage(parent, child)}: leave that alone.", hint("avoid", kinds)]
        case _:
            lines = [f"{direction} in {where} left the score as it was: not worth another evaluation."]
    lines[0] = lines[0][:1].upper() + lines[0][1:]
    value: JSON = {"direction": direction, "outcome": outcome, "lesson": "\n".join(lines)}
    return in_json("I compared the two versions.", value)


def outcome_of(parent: ShownProgram, child: ShownProgram) -> str:
    """Whether a change was a success: the word for it that a memory uses."""
    if child.score is None:
        return "failed"
    if parent.score is None or child.score > parent.score:
        return "success"
    return "neutral" if child.score == parent.score else "failed"


def _damage(parent: ShownProgram, child: ShownProgram) -> str:
    if child.score is not None:
        return f"lowered the score from {parent.score:g} to {child.score:g}"
    words = child.feedback.strip().splitlines()
    return f"broke the program ({words[-1].strip()[:_LAST_WORDS]})" if words else "broke the program"


def _where(parent: ShownProgram, child: ShownProgram) -> str:
    """The parts in which the programs differ."""
    before = traits(parent.program)
    changed = [name for name, said in traits(child.program).items() if before.get(name) != said]
    return ", ".join(f"`{name}`" for name in changed[:_TOLD]) or "the program"


def compress(prompt: str, rng: random.Random) -> str:
    """Merge similar notes: directions with the same first kind and outcome, and lessons with the same hints."""
    notes = notes_in(prompt)
    tried: Counter[Direction] = Counter()
    for each, count in notes.directions:
        tried[Direction(each.direction.split(" and ")[0], each.outcome)] += count
    latest = {(each.kind, hinted(each.text, "prefer"), hinted(each.text, "avoid")): each for each in notes.lessons}
    kept = Digest(tuple(tried.most_common(DIRECTIONS_KEPT)), tuple([*latest.values()][-LESSONS_KEPT:]))
    return in_json("What was alike is one entry now.", kept.to_json())


def notes_in(prompt: str) -> Digest:
    """The memory that a prompt shows."""
    blocks = labelled_blocks(sections(prompt).get(MEMORY_HEADING, ""))
    return Digest.of(json.loads(blocks[0][1])) if blocks else Digest((), ())


def queries(prompt: str, rng: random.Random) -> str:
    """Ask for experience with the kinds of changes for which the program has the most places."""
    parts = sections(prompt)
    program = parent_of(parts)
    about = " ".join(traits(program.program).values()) if program is not None else ""
    room: Mapping[str, int] = {
        "constants": len(re.findall(r"numbers (?!none)|[A-Z] [-\d]", about)),
        "loops": sum(map(int, re.findall(r"(\d+) loops", about))),
        "growth": sum(map(int, re.findall(r"(\d+) operators", about))),
        "statements": sum(map(int, re.findall(r"(\d+) statements", about))),
        "calls": len(re.findall(r"calls (?!none)", about)),
        "operators": about.count("("),
    }
    ranked = sorted(room, key=lambda kind: (-room[kind], kind))
    found: list[JSON] = [
        f"Did {PHRASES[kind]} help or harm a program that has {room[kind]} places for it?" for kind in ranked
    ]
    return in_json("These are about what there is most of.", found[: wanted_count(parts, 3)])


def distill(prompt: str, rng: random.Random) -> str:
    """Write a piece of experience on each kind of change that the best and the worst steps don't share equally."""
    parts = sections(prompt)
    rose = _by_kind(_steps(parts.get(IMPROVING_HEADING, "")))
    fell = _by_kind(_steps(parts.get(DEGRADING_HEADING, "")))
    found: list[tuple[int, JSON]] = []
    for kind in dict.fromkeys([*rose, *fell]):
        gains, losses = rose.get(kind, []), fell.get(kind, [])
        if len(gains) != len(losses):
            found.append((abs(len(gains) - len(losses)), _advice(kind, gains, losses)))
    found.sort(key=lambda pair: -pair[0])
    return in_json("What held in several steps.", [each for _, each in found[:DISTILLED]])


def _steps(section: str) -> list[_Step]:
    texts = _STEP.split(section)[1:]
    return [(float(found[1]), _named_kinds(text)) for text in texts if (found := _CHANGE.search(text)) is not None]


def _named_kinds(text: str) -> tuple[str, ...]:
    """The kinds that a lesson names: in its hints to a coder, or, if it has none, in its words."""
    lines = "\n".join(body for _, body in labelled_blocks(text))
    named = hinted(lines, "prefer") | hinted(lines, "avoid")
    return tuple(kind for kind in KINDS if kind in named or (not named and PHRASES[kind] in text))


def _by_kind(steps: Sequence[_Step]) -> dict[str, list[float]]:
    return {
        kind: [change for change, kinds in steps if kind in kinds]
        for kind in KINDS
        if any(kind in kinds for _, kinds in steps)
    }


def _advice(kind: str, gains: Sequence[float], losses: Sequence[float]) -> JSON:
    good = len(gains) > len(losses)
    most = max(gains) if good else min(losses)
    told = "helped most" if good else "harmed most"
    phrase = PHRASES[kind]
    text = (
        f"{phrase.capitalize()} were in {len(gains)} of the steps that helped most and in {len(losses)} of those "
        f"that harmed most; {'the best' if good else 'the worst'} changed the score by {most:+.3g}. "
        f"{'Begin with them.' if good else 'Try other things first.'}"
    )
    return {
        "title": f"Programs in which {phrase} {told}",
        "text": f"{text}\n{hint('prefer' if good else 'avoid', [kind])}",
    }
