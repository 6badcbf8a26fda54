"""Reads the names of a program's parts, as replies write them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flowevolve._util.json_types import JSON
from flowevolve.programs.parts import REST

_BEFORE = re.compile(r"^(?:async\s+)?(?:def|class|function|method)\s+")
_SEPARATOR = re.compile(r"[,;\n]\s*(?![^()]*\))|\s+and\s+")
_REST_WORDS = frozenset({"rest", "the rest", "module level", "module-level", "top level", "top-level"})


def parts_named(value: JSON, known: Sequence[str]) -> tuple[str, ...]:
    """The known parts among the names in a list or a text; ``name()`` and ``def name(x)`` are names of parts, too."""
    listed = value if isinstance(value, list) else _SEPARATOR.split(value) if isinstance(value, str) else []
    named = {_plain(each) for each in listed if isinstance(each, str)}
    return tuple(part for part in known if part in named)


def _plain(name: str) -> str:
    bare = _BEFORE.sub("", name.strip().strip("`'\"*- \t").strip())
    bare = bare.partition("(")[0].strip().removesuffix(":") if not bare.startswith("<") else bare
    return REST if bare.lower() in _REST_WORDS else bare
