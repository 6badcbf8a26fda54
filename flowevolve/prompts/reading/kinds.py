"""The kinds of replies by name, to find out what the readers read in a given reply."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from flowevolve._util.json_types import JSON
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.programs.names import parsed
from flowevolve.prompts.reading.answers import read_answer
from flowevolve.prompts.reading.children import Form, read_child
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reading.json_replies import answer_in, read_json
from flowevolve.prompts.reading.programs import read_program_text
from flowevolve.prompts.reading.verdicts import read_verdict

Kind = Literal["answer", "instruction", "program", "edits", "json", "verdict"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_ENDINGS = {
    "python": "py",
    "py": "py",
    "c++": "cpp",
    "javascript": "js",
    "typescript": "ts",
    "rust": "rs",
    "ruby": "rb",
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded reply, and the text that it was meant to change, if known."""

    reply: str
    parent: str | None = None
    language: str | None = None


def read_recorded(kind: Kind, recorded: Recorded) -> JSON:
    """What is read in a reply of this kind: the whole child for edits and programs, a text, or a value.

    Raises:
        UnparsableReplyError: if it can't be read.
    """
    return _READERS[kind](recorded)


def _program(recorded: Recorded, form: Form) -> str:
    if recorded.parent is None:
        return read_program_text(answer_in(recorded.reply), (recorded.language or "").lower())
    name = _file_name(recorded.parent, recorded.language)
    return read_child(recorded.reply, {name: recorded.parent}, form).files[name]


def _edits(recorded: Recorded) -> str:
    if recorded.parent is None:
        raise UnparsableReplyError("there is no parent that the edits could be applied to", Reason.MISSING)
    return _program(recorded, "edits")


def _file_name(parent: str, language: str | None) -> str:
    """A name whose ending tells the language. If that is not given, a parent that parses as Python and does something
    is Python.
    """
    if language is not None:
        return f"program.{_ENDINGS.get(language.lower(), language.lower() or 'txt')}"
    tree = parsed(parent)
    python = tree is not None and any(not isinstance(node, ast.Expr) for node in tree.body)
    return f"program.{'py' if python else 'txt'}"


_READERS: Mapping[Kind, Callable[[Recorded], JSON]] = {
    "answer": lambda recorded: read_answer(recorded.reply),
    "instruction": lambda recorded: read_instruction(recorded.reply, recorded.parent or ""),
    "program": lambda recorded: _program(recorded, "whole"),
    "edits": _edits,
    "json": lambda recorded: read_json(recorded.reply),
    "verdict": lambda recorded: _as_json(read_verdict(recorded.reply)),
}


def _as_json(verdict: str | float | list[int | float]) -> JSON:
    return [*verdict] if isinstance(verdict, list) else verdict


def outcome(kind: Kind, recorded: Recorded) -> str:
    """One line of JSON with what is read in a reply: ``ok``, ``result``, ``reason``."""
    try:
        done: dict[str, JSON] = {"ok": True, "result": read_recorded(kind, recorded), "reason": None}
    except UnparsableReplyError as error:
        done = {"ok": False, "result": None, "reason": f"{error.reason}: {error}"}
    return json.dumps(done)
