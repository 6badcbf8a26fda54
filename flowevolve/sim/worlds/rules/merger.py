"""How the world `rules` merges rewrites of an instruction, and how much it overlooks if they are too many."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from flowevolve.prompts.reading.fences import fence, labelled_blocks
from flowevolve.prompts.reflection import (
    EDITS_HEADING,
    HEAD_HEADING,
    ORIGIN_HEADING,
    VERSIONS_HEADING,
    WRITE_HEADING,
)
from flowevolve.sim.worlds.rules.params import RulesParams
from flowevolve.sim.worlds.rules.text import happens, misstate, read_statement


def merge(prompt: str, params: RulesParams, rng: random.Random) -> str:
    """Answer a `merge_prompt` with the lines that most versions kept and the lines that versions added, each rule once.

    A rule of the original gives way where some version replaced it. Of contradicting additions the one that most
    versions state is kept; of equally frequent ones, the first. The more versions, the more additions are overlooked.
    """
    head, _, after = prompt.partition(f"\n{VERSIONS_HEADING}\n")
    origin = [text for _, text in labelled_blocks(head.partition(f"\n{ORIGIN_HEADING}\n")[2])]
    versions = [text.splitlines() for _, text in labelled_blocks(_shown(after))]
    return _answer(origin[0].splitlines() if origin else [], versions, params, rng)


def _answer(before: Sequence[str], versions: Sequence[Sequence[str]], params: RulesParams, rng: random.Random) -> str:
    if rng.random() < params.unparsable:
        return "The versions have much in common, and each has something of its own."
    kept = _kept(before, versions)
    attention = min(1.0, params.comfortable_versions / max(1, len(versions))) * (1 - params.merge_loss)
    lines = _added(before, kept, versions, partial(happens, params.merge_noise, rng))
    added = [_taken_over(line, params, rng) for line in lines if rng.random() < attention]
    return f"Here is one instruction of all versions:\n\n{fence(chr(10).join([*kept, *added]))}"


def merge_edits(prompt: str, params: RulesParams, rng: random.Random) -> str:
    """Answer a `merge_edits_prompt`: apply each edit to the current version, and merge the results."""
    before, _, after = prompt.partition(f"\n{EDITS_HEADING}\n")
    head = labelled_blocks(before.partition(f"\n{HEAD_HEADING}\n")[2])[0][1].splitlines()
    versions: list[Sequence[str]] = []
    for section in re.split(r"^### Edit \d+$", _shown(after), flags=re.MULTILINE)[1:]:
        *start, result = [text.splitlines() for _, text in labelled_blocks(section)]
        versions.append(_rebased(start[0] if start else head, result, head))
    return _answer(head, versions, params, rng)


def _shown(after: str) -> str:
    """What is above the description of the reply."""
    return after.partition(f"\n{WRITE_HEADING}\n")[0]


def _rebased(before: Sequence[str], after: Sequence[str], head: Sequence[str]) -> list[str]:
    """The current version with the lines that an edit removed taken out and those that it added put at its end."""
    kept = [line for line in head if line in after or line not in before]
    return [*kept, *(line for line in after if line not in before and line not in head)]


def _taken_over(line: str, params: RulesParams, rng: random.Random) -> str:
    """An added line as the merge writes it."""
    stated = read_statement(line)
    if stated is None or not happens(params.merge_garble, rng):
        return line
    return f"- {misstate(stated.rule, rng)}"


def _kept(origin: Sequence[str], versions: Sequence[Sequence[str]]) -> list[str]:
    """The original's lines that at least half of the versions have, unless some version states that rule otherwise."""
    replaced = {
        stated.subject
        for version in versions
        for line in version
        if line not in origin and (stated := read_statement(line)) is not None
    }
    kept = [line for line in origin if 2 * sum(line in version for version in versions) >= len(versions)]
    return [line for line in kept if _subject(line) not in replaced or all(line in version for version in versions)]


def _added(
    origin: Sequence[str], kept: Sequence[str], versions: Sequence[Sequence[str]], keeps_noise: Callable[[], bool]
) -> list[str]:
    """The lines that versions added, without repetitions. Lines that state no rule need a majority of the versions,
    unless ``keeps_noise`` says that one stays.
    """
    lines = [line for version in versions for line in dict.fromkeys(version) if line.strip() and line not in origin]
    support = Counter(_said(line) for line in lines)
    settled = {_subject(line) for line in kept}
    added: list[str] = []
    for line in sorted(lines, key=lambda line: -support[_said(line)]):
        subject = _subject(line)
        if subject is None:
            if line not in added and (2 * support[line] > len(versions) or keeps_noise()):
                added.append(line)
        elif subject not in settled:
            settled.add(subject)
            added.append(line)
    return added


def _said(line: str) -> str:
    """A text that is equal for lines that state the same rule; for lines that state none, the line itself."""
    stated = read_statement(line)
    return line if stated is None else repr(stated)


def _subject(line: str) -> str | None:
    stated = read_statement(line)
    return None if stated is None else stated.subject
