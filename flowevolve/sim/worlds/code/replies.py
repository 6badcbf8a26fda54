"""Helpers for the answers of agents in the world `code`: JSON in a fence, garbled answers, and lines of advice."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence

from flowevolve._util.json_types import JSON
from flowevolve.prompts.programs import REPLY_HEADING
from flowevolve.prompts.reading.fences import fence
from flowevolve.sim.worlds.code.compare import PHRASES

_MARKS = re.compile(r'[\[\]{}"`]')
_NUMBER = re.compile(r"\d+")


def in_json(said: str, value: JSON) -> str:
    """A sentence followed by JSON in a fence."""
    return f"{said}\n\n{fence(json.dumps(value, indent=1, ensure_ascii=False), 'json')}"


def garbled(reply: str, rng: random.Random) -> str:
    """Make a reply unreadable: cut it off inside of its JSON, or remove all marks that make it JSON."""
    begin = min((place for place in map(reply.find, "[{") if place >= 0), default=None)
    if begin is not None and rng.random() < 0.5:
        return reply[: rng.randint(begin + 1, max(begin + 1, (begin + len(reply)) // 2))]
    return _MARKS.sub("", reply)


def wanted_count(parts: Mapping[str, str], default: int) -> int:
    """How many of something the prompt asks for: the first number in its section on the reply."""
    found = _NUMBER.search(parts.get(REPLY_HEADING, ""))
    return int(found[0]) if found else default


def in_words(kinds: Sequence[str]) -> str:
    """Kinds of changes in the words of a sentence."""
    return " and ".join(PHRASES[kind] for kind in kinds)


def hint(word: str, kinds: Sequence[str]) -> str:
    """The line by which a coder is told which kinds of changes to prefer or to avoid."""
    return f"{word}: {', '.join(kinds)}"
