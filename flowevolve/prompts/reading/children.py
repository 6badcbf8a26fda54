"""Reads the child that a reply makes from a program, whether it comes as edits or as a whole program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.programs.blocks import outside_unchanged
from flowevolve.programs.edits import MIDDLE_LINE, REPLACE_LINE, SEARCH_LINE, EditError
from flowevolve.programs.features import same_but_for_imports, syntax_error
from flowevolve.programs.names import defines, may_bind
from flowevolve.prompts.reading.edits import Found, LeftOut, apply_edits, failure, find_edits
from flowevolve.prompts.reading.elisions import emptied
from flowevolve.prompts.reading.fences import blocks, unwrapped
from flowevolve.prompts.reading.json_replies import answer_in
from flowevolve.prompts.reading.programs import ReadProgram, looks_whole, read_whole

_TEXTS = (".md", ".markdown", ".txt")
_NO_EDIT = (
    f"no SEARCH/REPLACE block in the reply; one has the lines {SEARCH_LINE!r}, {MIDDLE_LINE!r} and {REPLACE_LINE!r}"
)
Form = Literal["edits", "whole"]
"""The form of a reply: SEARCH/REPLACE edits of the parent, or a whole program."""


def read_child(
    reply: str, parent: Mapping[str, str], form: Form, *, all_edits: bool = False, entry: str = ""
) -> ReadProgram:
    """The child that a reply makes from ``parent``, and the parts of the reply that were left out.

    Edits that can't be applied are left out; with ``all_edits``, or if the other edits change nothing but imports, the
    whole reply is refused instead. If edits were asked for, a whole program is accepted if it has all that the parent
    has (`looks_whole`). If a whole program was asked for, edits are accepted, too.

    Raises:
        UnparsableReplyError: if nothing in the reply can be used, or the child would not compile, or it changes text
            outside the EVOLVE-BLOCK marks, or it lacks the function ``entry``, which its parent defines.
    """
    answer = _answer(reply, parent)
    found = _edits(answer, parent, form)
    if form == "edits" and not found and not looks_whole(answer, parent):
        raise EditError(_NO_EDIT, Reason.MISSING)
    read = _edited(found, parent, all_edits=all_edits) if found else read_whole(answer, parent)
    for name, text in read.files.items():
        _check(name, parent[name], text, read.left_out)
    _check_entry(entry, read.files, parent)
    return read


def is_whole(reply: str, parent: Mapping[str, str], form: Form) -> bool:
    """Whether a reply that was cut off at the token limit has all that `read_child` takes from it: its last edit or
    last block is complete, or that block adds nothing. A program without a fence never counts as complete, as any part
    of it may be missing.
    """
    answer = _answer(reply, parent)
    found = _edits(answer, parent, form)
    if found:
        return found[-1].ended
    fenced = blocks(answer, parent)
    if not fenced or fenced[-1].closed:
        return bool(fenced)
    before = "\n".join(answer.split("\n")[: fenced[-1].start])
    return len(fenced) > 1 and _program(before, parent) == _program(answer, parent)


def check_child(child: Mapping[str, str], parent: Mapping[str, str], entry: str) -> None:
    """Check files that were changed in place.

    Raises:
        UnparsableReplyError: if the child would not compile, or it changes text outside the EVOLVE-BLOCK marks, or it
            lacks the function ``entry``, which its parent defines.
    """
    for name, text in child.items():
        _check(name, parent[name], text, ())
    _check_entry(entry, child, parent)


def _answer(reply: str, parent: Mapping[str, str]) -> str:
    answer = answer_in(reply)
    return answer if any(name.endswith(_TEXTS) for name in parent) else unwrapped(answer)


def _edits(answer: str, parent: Mapping[str, str], form: Form) -> Sequence[Found]:
    """The edits of a reply that are to be made: none if a whole program was asked for and the reply has one, too."""
    found = find_edits(answer, parent)
    return found if form == "edits" or not found or not _has_program_beside(answer, parent) else ()


def _has_program_beside(answer: str, parent: Mapping[str, str]) -> bool:
    """Whether a reply with edits also has a whole program that compiles."""
    read = _program(answer, parent)
    if read is None:
        return False
    return all(syntax_error(text) is None for name, text in read.files.items() if name.endswith(".py"))


def _program(answer: str, parent: Mapping[str, str]) -> ReadProgram | None:
    """The whole program of a reply, if it has one."""
    try:
        return read_whole(answer, parent)
    except UnparsableReplyError:
        return None


def _edited(found: Sequence[Found], parent: Mapping[str, str], *, all_edits: bool) -> ReadProgram:
    files, left_out = apply_edits(parent, found)
    wrong = [each for each in left_out if each.reason not in _NOT_MISSED]
    if len(left_out) == len(found) or (wrong and (all_edits or _imports_alone(parent, files))):
        raise failure(wrong or left_out, len(found))
    return ReadProgram(files, tuple(left_out))


_NOT_MISSED = (Reason.NO_OP, Reason.DRAFT)
"""The reasons for which edits may be left out even if all edits of a reply must be made."""


def _imports_alone(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Whether nothing but imports was changed: they are probably for an edit that could not be made."""
    changed = [name for name in old if old[name] != new[name]]
    return all(name.endswith(".py") and same_but_for_imports(old[name], new[name]) for name in changed)


def _check(name: str, old: str, new: str, left_out: Sequence[LeftOut]) -> None:
    if not outside_unchanged(old, new):
        raise UnparsableReplyError(f"{name}: what is outside of the EVOLVE-BLOCK marks was changed", Reason.FROZEN)
    if not name.endswith(".py") or new == old:
        return
    left = emptied(new, old)
    if left is not None:
        raise UnparsableReplyError(f"{name} is not complete: the body of {left[:60]!r} is left out", Reason.ELIDED)
    wrong = syntax_error(new)
    if wrong is not None:
        beside = f"; {left_out[0].message}" if left_out else ""
        raise UnparsableReplyError(f"{name} does not compile: {wrong}{beside}", Reason.DOES_NOT_COMPILE)


def _check_entry(entry: str, child: Mapping[str, str], parent: Mapping[str, str]) -> None:
    for name, text in child.items():
        if name.endswith(".py") and defines(parent[name], entry) and not may_bind(text, entry):
            raise UnparsableReplyError(
                f"the program is not complete: {name} does not define {entry}, which is called", Reason.ELIDED
            )
