"""How the world `code` writes a program into its reply: as edits or as a whole, and sometimes with a mistake."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from flowevolve.programs.edits import MIDDLE_LINE, REPLACE_LINE, Edit, EditError, apply_edit
from flowevolve.prompts.reading.children import Form
from flowevolve.prompts.reading.fences import fence

_COLON = re.compile(r":[ \t]*$", re.MULTILINE)


def edits_between(old: str, new: str, file: str | None = None) -> list[Edit]:
    """Edits that turn the old text into the new one, each with as many lines around it as its place needs to be unique.

    Raises:
        ValueError: if there is nothing to search for in the old text.
    """
    before, after = old.split("\n"), new.split("\n")
    if not any(line.strip() for line in before):
        raise ValueError("the old text has no line to search for")
    edits: list[Edit] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            edit = _edit(before, after, (i1, i2, j1, j2), file)
            if edit is None:  # the edits before this one have left nothing but blank lines
                return [Edit(tuple(before), tuple(after), file)]
            edits.append(edit)
    return edits


def _edit(
    before: Sequence[str], after: Sequence[str], place: tuple[int, int, int, int], file: str | None
) -> Edit | None:
    """The edit of one place, given that all above it has been edited already.

    None if there are only blank lines to search for.
    """
    i1, i2, j1, j2 = place
    text = "\n".join([*after[:j1], *before[i1:]])
    expected = "\n".join([*after[:j2], *before[i2:]])
    for around in range(max(j1, len(before) - i2) + 1):
        above, below = after[max(0, j1 - around) : j1], before[i2 : i2 + around]
        edit = Edit((*above, *before[i1:i2], *below), (*above, *after[j1:j2], *below), file)
        if any(line.strip() for line in edit.search) and _makes(text, edit, expected):
            return edit
    return None


def _makes(text: str, edit: Edit, expected: str) -> bool:
    try:
        return apply_edit(text, edit) == expected
    except EditError:
        return False


def write_reply(old: Mapping[str, str], new: Mapping[str, str], form: Form, said: str) -> str:
    """Write files in the form that was asked for, with the sentence ``said`` ahead of them."""
    changed = {name: text for name, text in new.items() if text != old[name]}
    if form == "whole":
        blocks = [fence(text, "python" if len(new) == 1 else name) for name, text in (changed or new).items()]
        return "\n\n".join([said, *blocks])
    named = len(new) > 1
    edits = [edit for name, text in changed.items() for edit in edits_between(old[name], text, name if named else None)]
    return "\n\n".join([said, *map(str, edits)])


def broken(reply: str, form: Form, rng: random.Random) -> str:
    """Spoil a reply: with a syntax error, with lines that the program does not have, or by leaving something out."""
    way = rng.choice(("syntax", "lines", "form"))
    if way == "syntax" and (colons := list(_COLON.finditer(reply))):
        slip = rng.choice(colons)
        return reply[: slip.start()] + reply[slip.end() :]
    if way == "lines" and form == "edits":
        return reply.replace(f"\n{MIDDLE_LINE}", f"\n    # as before\n{MIDDLE_LINE}", 1)
    if form == "edits":
        return reply.replace(f"\n{REPLACE_LINE}", "", 1)
    return reply.partition("```")[0]
