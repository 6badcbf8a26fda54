"""The world `code` as agents that describe programs in words: it writes abstracts, guides, and chooses examples."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from flowevolve._util.json_types import JSON
from flowevolve.prompts.abstracts import (
    ABSTRACT,
    KIND_HEADINGS,
    PARENT_HEADING,
    PROGRAMS_HEADING,
)
from flowevolve.prompts.programs import REPLY_HEADING, ShownProgram
from flowevolve.prompts.reading.fences import labelled_blocks
from flowevolve.sim.worlds.code.compare import kinds_between
from flowevolve.sim.worlds.code.prompt import KINDS, named_programs, parent_of, sections
from flowevolve.sim.worlds.code.replies import hint, in_json, in_words
from flowevolve.sim.worlds.code.traits import kind_of_change, traits

_MOST = re.compile(r"at most (\d+)")
_LINK = re.compile(r" -> (\S+) \(([^)]*)\)")
_NEW_TRAIT = re.compile(rf"\b({'|'.join(KINDS)}): `")
_WORD = re.compile(r"\w+")
_FAILED_CHOSEN = 0.3
"""How often a failed program is among the examples, if there is one."""
Step = tuple[str, str, float | None]
"""The names of a parent and its child, and the change of the score, which is None if the child failed."""


def summarize(prompt: str, rng: random.Random) -> str:
    """Describe a program in words: which traits it shares with the description of its parent, and which are new."""
    parts = sections(prompt)
    program = parent_of(parts)
    if program is None:
        return "There is no program to describe."
    before = "\n".join(body for _, body in labelled_blocks(parts.get(PARENT_HEADING, "")))
    found = {name: f"`{name}`: {said}" for name, said in traits(program.program).items()}
    inherited = [said for said in found.values() if said in before]
    kinds = {name: kind_of_change(name, said, before) for name, said in found.items() if _is_new(name, said, before)}
    new = [f"{kind}: {found[name]}" for name, kind in kinds.items()] if before else [*found.values()]
    value: JSON = {
        "inherited": [*inherited],
        "new": [*new],
        "abstract": _abstract(found, [*kinds.values()] if before else []),
    }
    return in_json("In words:", value)


def _is_new(name: str, said: str, before: str) -> bool:
    """Whether a trait differs from before. A part that was named but not described is taken to be unchanged."""
    return said not in before and (f"`{name}`: " in before or name not in before)


def _abstract(found: Mapping[str, str], kinds: Sequence[str]) -> str:
    loops = {name: int(told[1]) for name, said in found.items() if (told := re.search(r"(\d+) loops", said))}
    most = max(loops, key=lambda name: loops[name], default="")
    said = [f"The program works in {len(found)} parts: {', '.join(found)}."]
    if most:
        said.append(f"Most of the work is done in `{most}`, which goes through {loops[most]} loops.")
    if kinds:
        said.append(f"What it was made from had not: {in_words([*dict.fromkeys(kinds)])}.")
    return " ".join(said)


def navigate(prompt: str, rng: random.Random) -> str:
    """Guide by the kinds of changes, ranked by the mean change of the score in the steps that made them."""
    parts = sections(prompt)
    shown = named_programs(parts.get(PROGRAMS_HEADING, ""))
    worth = _worth(parts, shown)
    ranked = sorted(worth, key=lambda kind: -worth[kind])
    good = [kind for kind in ranked if worth[kind] > 0][:2]
    bad = [kind for kind in ranked[::-1] if worth[kind] < 0 and kind not in good][:1]
    untried = [kind for kind in KINDS if kind not in worth]
    further = good or [rng.choice(untried or KINDS)]
    lines = [
        f"Worth going on with: {in_words(further)}; " + ("gains came with it." if good else "nobody has gained yet.")
    ]
    if untried:
        lines.append(f"Nobody has gone this way so far: {in_words(untried[:2])}.")
    lines.append(hint("prefer", further))
    if bad:
        lines += [f"Tried often enough, with losses: {in_words(bad)}.", hint("avoid", bad)]
    return in_json("I followed each trajectory.", {"guidance": "\n".join(lines)})


def _worth(parts: Mapping[str, str], shown: Mapping[str, ShownProgram]) -> dict[str, float]:
    """The mean change of the score by kind, as a share of the largest change; a failure counts as the largest loss."""
    steps = all_steps(parts)
    largest = max((abs(change) for _, _, change in steps if change is not None), default=0.0) or 1.0
    found: defaultdict[str, list[float]] = defaultdict(list)
    for parent, child, change in steps:
        for kind in _kinds(shown.get(parent), shown.get(child)):
            found[kind].append(-1.0 if change is None else change / largest)
    return {kind: fmean(changes) for kind, changes in found.items()}


def all_steps(parts: Mapping[str, str]) -> Sequence[Step]:
    """The steps of all trajectories that a prompt shows, each once."""
    return [*dict.fromkeys(step for heading in KIND_HEADINGS.values() for step in _steps(parts.get(heading, "")))]


def _steps(section: str) -> Iterator[Step]:
    for line in section.split("\n"):
        name = line.removeprefix("- ").split(" -> ")[0]
        for child, change in _LINK.findall(line):
            yield name, child, None if change == "failed" else float(change)
            name = child


def _kinds(parent: ShownProgram | None, child: ShownProgram | None) -> list[str]:
    """The kinds of changes of a step: from the abstract if the prompt shows abstracts, else from the two programs."""
    if child is None:
        return []
    if ABSTRACT in child.program:
        return [*dict.fromkeys(_NEW_TRAIT.findall(child.program[ABSTRACT]))]
    return [] if parent is None else kinds_between(parent.program, child.program)


def exemplars(prompt: str, rng: random.Random) -> str:
    """Choose the best program, the one most unlike the parent, and now and then one that failed."""
    parts = sections(prompt)
    parent = parent_of(parts)
    shown = named_programs(parts.get(PROGRAMS_HEADING, ""))
    most = int(found[1]) if (found := _MOST.search(parts.get(REPLY_HEADING, ""))) else 1
    words = _words(parent) if parent is not None else frozenset[str]()
    worked = {name: program.score for name, program in shown.items() if program.score is not None}
    chosen: dict[str, str] = {}
    if worked:
        best = max(worked, key=lambda name: worked[name])
        chosen[best] = f"It has the highest score, {worked[best]:g}: {_new_kinds(shown[best])}."
        unlike = max(worked, key=lambda name: len(_words(shown[name]) ^ words))
        chosen.setdefault(unlike, f"It is most unlike the program: {_new_kinds(shown[unlike])}.")
    failed = [name for name in shown if name not in worked]
    if failed and (not chosen or rng.random() < _FAILED_CHOSEN):
        name = rng.choice(failed)
        chosen[name] = f"It failed, and still has what nobody else has: {_new_kinds(shown[name])}."
    value: list[JSON] = [{"id": name, "why": why} for name, why in [*chosen.items()][:most]]
    return in_json("These say most.", {"chosen": value})


def _words(program: ShownProgram) -> frozenset[str]:
    return frozenset(word for text in program.program.values() for word in _WORD.findall(text))


def _new_kinds(program: ShownProgram) -> str:
    kinds = [*dict.fromkeys(_NEW_TRAIT.findall(program.program.get(ABSTRACT, "")))]
    return in_words(kinds[:2]) or "its build"
