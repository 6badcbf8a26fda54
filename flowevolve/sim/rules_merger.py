"""How the world `rules` merges rewrites of an instruction, and how much of them gets lost when they are too many."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from flowevolve.prompts import ORIGIN_HEADING, VERSIONS_HEADING, fence, labelled_blocks
from flowevolve.sim.rules_params import RulesParams
from flowevolve.sim.rules_text import read_statement


def merge(prompt: str, params: RulesParams, rng: random.Random) -> str:
    """Answer a `merge_prompt`: the lines most versions kept, and what versions added, each thing once.

    A rule that some version replaced gives way. Of contradictions the one that more versions state is kept, of equals
    the first. The more versions, the more additions are overlooked.
    """
    head, _, after = prompt.partition(f"\n{VERSIONS_HEADING}\n")
    origin = [text for _, text in labelled_blocks(head.partition(f"\n{ORIGIN_HEADING}\n")[2])]
    versions = [text.splitlines() for _, text in labelled_blocks(after)]
    if rng.random() < params.unparsable:
        return "The versions have much in common, and each has something of its own."
    before = origin[0].splitlines() if origin else []
    kept = _kept(before, versions)
    attention = min(1.0, params.comfortable_versions / max(1, len(versions)))
    added = [line for line in _added(before, kept, versions) if rng.random() < attention]
    return f"Here is one instruction of all versions:\n\n{fence(chr(10).join([*kept, *added]))}"


def _kept(origin: Sequence[str], versions: Sequence[Sequence[str]]) -> list[str]:
    """What half of the versions have and none replaced by something else on the same matter."""
    replaced = {
        stated.slot
        for version in versions
        for line in version
        if line not in origin and (stated := read_statement(line)) is not None
    }
    kept = [line for line in origin if 2 * sum(line in version for version in versions) >= len(versions)]
    return [line for line in kept if _slot(line) not in replaced or all(line in version for version in versions)]


def _added(origin: Sequence[str], kept: Sequence[str], versions: Sequence[Sequence[str]]) -> list[str]:
    """What versions have and the original has not, without repetitions; lines that state no rule only if most do."""
    lines = [line for version in versions for line in dict.fromkeys(version) if line.strip() and line not in origin]
    support = Counter(_said(line) for line in lines)
    settled = {_slot(line) for line in kept}
    added: list[str] = []
    for line in sorted(lines, key=lambda line: -support[_said(line)]):
        slot = _slot(line)
        if slot is None:
            if 2 * support[line] > len(versions) and line not in added:
                added.append(line)
        elif slot not in settled:
            settled.add(slot)
            added.append(line)
    return added


def _said(line: str) -> str:
    """Equal for lines that state the same rule; of others, the line itself."""
    stated = read_statement(line)
    return line if stated is None else repr(stated)


def _slot(line: str) -> str | None:
    stated = read_statement(line)
    return None if stated is None else stated.slot
