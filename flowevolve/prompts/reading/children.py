"""What a reply makes of a program: by edits, or whole, in whichever of these forms it comes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from flowevolve.core.model import Reason, UnparsableReplyError
from flowevolve.programs.blocks import outside_unchanged
from flowevolve.programs.edits import EditError
from flowevolve.programs.features import same_but_for_imports, syntax_error
from flowevolve.prompts.reading.edits import Found, LeftOut, apply_edits, failure, find_edits
from flowevolve.prompts.reading.fences import unwrapped
from flowevolve.prompts.reading.json_replies import answer_in
from flowevolve.prompts.reading.programs import ReadProgram, looks_whole, read_whole

_TEXTS = (".md", ".markdown", ".txt")
Form = Literal["edits", "whole"]
"""The form of a reply: SEARCH/REPLACE edits of the parent, or a whole program."""


def read_child(reply: str, parent: Mapping[str, str], form: Form, *, all_edits: bool = False) -> ReadProgram:
    """The child that a reply makes of a program, and what of the reply was left out.

    Edits that can't be applied are left out. With ``all_edits``, or where the rest changes imports alone, nothing is
    taken. A whole program where edits were asked for is one if it defines all that the parent does; edits where a whole
    one was asked for are edits.

    Raises:
        UnparsableReplyError: if nothing of it can be taken, or the child would not compile or not keep to the marks.
    """
    answer = answer_in(reply)
    if not any(name.endswith(_TEXTS) for name in parent):
        answer = unwrapped(answer)
    found = find_edits(answer)
    if form == "edits" and not found and not looks_whole(answer, parent):
        raise EditError("no SEARCH/REPLACE block in the reply", Reason.MISSING)
    if found and (form == "edits" or not _has_program_beside(answer, parent)):
        read = _edited(found, parent, all_edits=all_edits)
    else:
        read = read_whole(answer, parent)
    for name, text in read.files.items():
        _check(name, parent[name], text, read.left_out)
    return read


def _has_program_beside(answer: str, parent: Mapping[str, str]) -> bool:
    """Whether a reply has a whole program although it has edits."""
    try:
        read = read_whole(answer, parent)
    except UnparsableReplyError:
        return False
    return all(syntax_error(text) is None for name, text in read.files.items() if name.endswith(".py"))


def _edited(found: Sequence[Found], parent: Mapping[str, str], *, all_edits: bool) -> ReadProgram:
    files, left_out = apply_edits(parent, found)
    wrong = [each for each in left_out if each.reason not in _NOT_MISSED]
    if len(left_out) == len(found) or (wrong and (all_edits or _imports_alone(parent, files))):
        raise failure(wrong or left_out, len(found))
    return ReadProgram(files, tuple(left_out))


_NOT_MISSED = (Reason.NO_OP, Reason.DRAFT)
"""What may be left out of a reply although all of its edits are to be made."""


def _imports_alone(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Whether nothing but imports was changed: those of an edit that could not be made."""
    changed = [name for name in old if old[name] != new[name]]
    return all(name.endswith(".py") and same_but_for_imports(old[name], new[name]) for name in changed)


def _check(name: str, old: str, new: str, left_out: Sequence[LeftOut]) -> None:
    if not outside_unchanged(old, new):
        raise UnparsableReplyError(f"{name}: what is outside of the EVOLVE-BLOCK marks was changed", Reason.FROZEN)
    wrong = syntax_error(new) if name.endswith(".py") and new != old else None
    if wrong is not None:
        beside = f"; {left_out[0].message}" if left_out else ""
        raise UnparsableReplyError(f"{name} does not compile: {wrong}{beside}", Reason.DOES_NOT_COMPILE)
