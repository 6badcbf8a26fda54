"""Reads SEARCH/REPLACE edits in a reply, in the spellings that models use, and applies those that can be applied."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.programs.edits import Edit, EditError, apply_edit
from flowevolve.prompts.reading.choosing import ATTEMPT, named_a_draft
from flowevolve.prompts.reading.elisions import elision
from flowevolve.prompts.reading.fences import blocks
from flowevolve.prompts.reading.file_names import file_named, file_named_above

_AFTER = r"(?:\([^()]*\)[ \t]*)?(?::[ \t]*)?`*$"
"""What may follow the word of a mark, such as the numbers of the lines in brackets."""
_SEARCH = re.compile(r"^[ \t]*(?:<{4,12}|-{5,12})[ \t]*(?:SEARCH|ORIGINAL|OLD)\b[ \t]*" + _AFTER, re.IGNORECASE)
_MIDDLE = re.compile(r"^[ \t]*={5,12}[ \t]*$")
_SEVEN = re.compile(r"^[ \t]*={7}[ \t]*$")
_REPLACE = re.compile(
    r"^[ \t]*(?:[<>]{4,12}|\+{5,12})[ \t]*(?:REPLACE|UPDATED|NEW|END)\b[ \t]*" + _AFTER + r"|^[ \t]*>{7}[ \t]*$",
    re.IGNORECASE,
)
_SEARCH_WORD = re.compile(
    r"^[ \t*_#>-]*(?:SEARCH|FIND)[ \t*_]*:[ \t*_]*$|^[ \t]*(?:\*\*|#+ )(?:SEARCH|FIND)(?:\*\*)?[ \t]*$", re.IGNORECASE
)
_REPLACE_WORD = re.compile(
    r"^[ \t*_#>-]*REPLACE(?:[ \t]+WITH)?[ \t*_]*:[ \t*_]*$|^[ \t]*(?:\*\*|#+ )REPLACE(?:[ \t]+WITH)?(?:\*\*)?[ \t]*$",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[\w.+-]*[ \t]*$")
_FILE = re.compile(r"^[ \t*_#]*FILE(?:NAME)?[*_]*:[ \t*_]*(\S.*)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of a reply that was not used, with the reason and a sentence that names the part."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Found:
    """An edit in a reply, or the problem with what was meant as one; ``number`` counts them from 1. ``ended`` says
    whether it is complete: it has a closing mark or fence or, in the form that has neither, another edit follows.
    """

    number: int
    edit: Edit | None
    problem: EditError | None = None
    ended: bool = True


def find_edits(answer: str, files: Collection[str] = ()) -> list[Found]:
    """The edits in a reply (given without its thinking), in order; text between them is ignored.

    A line ``FILE: name``, or a heading or label that names one of several ``files``, applies until the next one. Edits
    below a heading that names drafts get a `Found.problem` instead of the edit, unless all edits are drafts.
    """
    known = files if len(files) > 1 else ()
    found: list[Found] = []
    drafts: list[bool] = []
    end = 0
    lines = answer.split("\n")
    place = 0
    file: str | None = None
    while place < len(lines):
        line, start, before = lines[place], place, len(found)
        if named := _FILE.match(line):
            file = file_named(line, known) or named[1].strip().strip("`*'\" ")
            place += 1
        elif _SEARCH.match(line):
            file = _named_above(lines[end:start], known) or file
            one, place = _bracketed(lines, place + 1, len(found) + 1, file)
            found.append(one)
        elif _SEARCH_WORD.match(line):
            file = _named_above(lines[end:start], known) or file
            named_one, place = _named(lines, place + 1, len(found) + 1, file)
            if named_one is not None:
                found.append(named_one)
        else:
            place += 1
        if len(found) > before:
            drafts.append(_is_draft(lines[end:start], after=drafts))
            end = place
    if all(drafts):
        return found
    problem = EditError("it stands below a heading that names drafts", Reason.DRAFT)
    return [
        Found(each.number, None, problem, each.ended) if draft else each
        for each, draft in zip(found, drafts, strict=True)
    ]


def _named_above(above: Sequence[str], known: Collection[str]) -> str | None:
    """The file that the lines since the previous edit name in other ways than by a line ``FILE: name``."""
    return file_named_above(above, known) if known and not any(map(_FILE.match, above)) else None


def _is_draft(above: Sequence[str], *, after: Sequence[bool]) -> bool:
    """Whether a heading in the lines since the previous edit names drafts; without text there, as for that edit."""
    said = [line for line in above if line.strip() and not (_FENCE.match(line) or _FILE.match(line))]
    if not said:
        return bool(after) and after[-1]
    return named_a_draft(said[-1]) and ATTEMPT.search(said[-1]) is not None


def _bracketed(lines: Sequence[str], start: int, number: int, file: str | None) -> tuple[Found, int]:
    """The edit whose SEARCH line is just above ``start``, and where to read on."""
    stop = next(
        (place for place in range(start, len(lines)) if _REPLACE.match(lines[place]) or _SEARCH.match(lines[place])),
        len(lines),
    )
    ended = stop < len(lines) and _REPLACE.match(lines[stop]) is not None
    middles = [place for place in range(start, stop) if _SEVEN.match(lines[place])]
    middles = middles or [place for place in range(start, stop) if _MIDDLE.match(lines[place])]
    if not ended and middles and (close := _closing_fence(lines, start, middles[0], stop)) is not None:
        ended, stop = True, close
    if not middles:
        return Found(number, None, EditError("it has no line '======='", Reason.INCOMPLETE), ended), stop + ended
    if not ended:
        return Found(number, None, EditError("it has no line '>>>>>>> REPLACE'", Reason.INCOMPLETE), ended), stop
    middle = middles[-1] if _twice(lines, middles) else middles[0]
    search, replace = _unfenced(lines[start:middle], lines[middle + 1 : stop])
    return Found(number, Edit(search, replace, file)), stop + 1


def _twice(lines: Sequence[str], middles: Sequence[int]) -> bool:
    """Whether the line that ends the SEARCH text was written twice, with nothing between."""
    return not any(line.strip() for line in lines[middles[0] + 1 : middles[-1]])


def _closing_fence(lines: Sequence[str], start: int, middle: int, stop: int) -> int | None:
    """Where the fence around an edit without its last line ends; None unless a fence is around that edit alone."""
    above = next((line for line in reversed(lines[max(0, start - 3) : start - 1]) if line.strip()), "")
    if not _FENCE.match(above):
        return None
    marks = above.strip()[:3]
    ends = [place for place in range(middle + 1, stop) if lines[place].strip() == marks]
    return ends[0] if len(ends) == 1 else None


def _unfenced(search: Sequence[str], replace: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Both texts without fences, if both have one around them; the second may be empty."""
    inner, other = _inside_fence(search), _inside_fence(replace)
    if inner is not None and (other is not None or not any(line.strip() for line in replace)):
        return tuple(inner), tuple(other or ())
    return tuple(search), tuple(replace)


def _inside_fence(lines: Sequence[str]) -> Sequence[str] | None:
    filled = [place for place, line in enumerate(lines) if line.strip()]
    if len(filled) < 2 or not _FENCE.match(lines[filled[0]]) or lines[filled[-1]].strip() not in ("```", "~~~", "````"):
        return None
    return lines[filled[0] + 1 : filled[-1]]


def _named(lines: Sequence[str], start: int, number: int, file: str | None) -> tuple[Found | None, int]:
    """An edit in the form of two fenced blocks, one under ``SEARCH:`` and one under ``REPLACE:``."""
    above = next((line for line in lines[start : start + _MOST_LINES] if line.strip()), "")
    fenced = blocks("\n".join(lines[start : start + _MOST_LINES]))[:2] if _FENCE.match(above) else []
    if len(fenced) == 2 and not any(line.strip() for line in lines[start : start + fenced[0].start]):
        between = [line for line in lines[start + fenced[0].stop : start + fenced[1].start] if line.strip()]
        if len(between) == 1 and _REPLACE_WORD.match(between[0]) and fenced[1].closed:
            search, replace = (tuple(each.body.split("\n")) if each.body else () for each in fenced)
            return Found(number, Edit(search, replace, file)), start + fenced[1].stop
    return _named_unfenced(lines, start, number, file)


def _named_unfenced(lines: Sequence[str], start: int, number: int, file: str | None) -> tuple[Found | None, int]:
    """As `_named`, without fences: the new lines extend to the next ``SEARCH:`` or the end of the reply."""
    ends = (place for place in range(start, len(lines)) if _SEARCH_WORD.match(lines[place]))
    stop = next(ends, len(lines))
    middle = next((place for place in range(start, stop) if _REPLACE_WORD.match(lines[place])), None)
    if middle is None:
        return None, start
    search, replace = lines[start:middle], lines[middle + 1 : stop]
    while search and not search[-1].strip():
        search = search[:-1]
    while replace and not replace[-1].strip():
        replace = replace[:-1]
    return Found(number, Edit(tuple(search), tuple(replace), file), ended=stop < len(lines)), stop


_MOST_LINES = 2000
"""How many lines below ``SEARCH:`` are searched for its blocks."""


def apply_edits(files: Mapping[str, str], found: Sequence[Found]) -> tuple[dict[str, str], list[LeftOut]]:
    """The files after the edits were made one after the other, and the edits that were not made.

    If there is only one file, edits need not name it. If there are several, an edit that names none is made in the only
    one that has its SEARCH text.

    Raises:
        EditError: if there are more than `MOST_EDITS`.
    """
    if len(found) > MOST_EDITS:
        raise EditError(f"there are {len(found)} edits in the reply; make at most {MOST_EDITS}")
    unclear: set[_Wanted] = set()
    while True:
        changed, left_out, contradicted = _made(files, found, unclear)
        if not contradicted:
            return changed, left_out
        unclear |= contradicted


_Wanted = tuple[str, str]
"""A file, and the lines of it that an edit searches for."""


def _made(
    files: Mapping[str, str], found: Sequence[Found], unclear: Collection[_Wanted]
) -> tuple[dict[str, str], list[LeftOut], set[_Wanted]]:
    """As `apply_edits`, but without making edits of ``unclear`` lines; also returns the lines with contradicting edits.

    Edits contradict each other if a later one has the SEARCH text of one that was made, with another replacement, and
    does not find that text any more.
    """
    changed = dict(files)
    left_out: list[LeftOut] = []
    made: dict[_Wanted, Edit] = {}
    contradicted: set[_Wanted] = set()
    for each in found:
        try:
            if each.edit is None:
                raise each.problem or EditError("it can't be read")
            name = _file_of(each.edit, changed)
            wanted = name, _bare(each.edit.search)
            if wanted in unclear:
                raise EditError("another edit puts other lines in the same place; write one alone", Reason.AMBIGUOUS)
            _refuse_elisions(each.edit, changed[name])
            before = made.get(wanted)
            try:
                changed[name] = apply_edit(changed[name], each.edit, comment_of(name))
            except EditError as error:
                if error.reason is Reason.NOT_FOUND and before and _bare(before.replace) != _bare(each.edit.replace):
                    contradicted.add(wanted)
                raise
            made[wanted] = each.edit
        except EditError as error:
            left_out.append(LeftOut(error.reason, f"edit {each.number}: {error}"))
    return changed, left_out, contradicted


def _bare(lines: Sequence[str]) -> str:
    """Lines as one text, without space at the ends of lines and empty lines around them, which make no difference."""
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def comment_of(file: str) -> str:
    """The mark that begins a comment in the language of a file; empty if that is not known."""
    ending = file.rpartition(".")[2].lower()
    return "#" if ending in _HASH else "//" if ending in SLASHES else ""


_HASH = frozenset({"py", "sh", "rb", "jl", "r", "toml", "yaml", "yml"})
SLASHES = frozenset(
    {"c", "cc", "cpp", "cxx", "h", "hpp", "cu", "java", "js", "ts", "go", "rs", "cs", "swift", "kt", "scala", "php"}
)
"""The endings of files in languages whose comments begin with ``//``."""


def _refuse_elisions(edit: Edit, text: str) -> None:
    for part in ("\n".join(edit.search), "\n".join(edit.replace)):
        left_out = elision(part, text)
        if left_out is not None:
            raise EditError(f"{left_out[:60]!r} in it stands for lines; write all of them", Reason.ELIDED)


def _file_of(edit: Edit, files: Mapping[str, str]) -> str:
    if len(files) == 1 and (edit.file is None or edit.file not in files):
        return next(iter(files))
    if edit.file is not None and edit.file in files:
        return edit.file
    fitting = [name for name, text in files.items() if edit.file is None and _has_place(edit, name, text)]
    if len(fitting) == 1:
        return fitting[0]
    problem = "no line 'FILE: name' stands before it" if edit.file is None else f"there is no file {edit.file!r}"
    raise EditError(f"{problem}; the files are {', '.join(files)}", Reason.UNKNOWN_FILE)


def _has_place(edit: Edit, name: str, text: str) -> bool:
    try:
        apply_edit(text, edit, comment_of(name))
    except EditError as error:
        return error.reason is not Reason.NOT_FOUND
    return True


def failure(left_out: Sequence[LeftOut], total: int) -> UnparsableReplyError:
    """The error for a reply none of whose edits, or not all that are required, can be applied."""
    told = "; ".join(each.message for each in left_out[:_MOST_TOLD])
    more = f"; and {len(left_out) - _MOST_TOLD} more" if len(left_out) > _MOST_TOLD else ""
    return EditError(f"{len(left_out)} of {total} edits can't be applied: {told}{more}", left_out[0].reason)


_MOST_TOLD = 5
MOST_EDITS = 500
