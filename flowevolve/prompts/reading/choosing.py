"""Chooses which of several texts in a reply is meant: by what the reply says of each, never by place or length."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.prompts.reading.fences import Block

Said = Literal["final", "new", "draft", "nothing"]
"""What a reply says of a block: that it is the final one, a new one, one that is not meant (``draft``), or nothing."""

_OLD = r"(?!\s+(?:old|original|current|existing|previous|parent|examples?|outline)\b)"
_FINAL = re.compile(rf"\b(final|complete|full|definitive)\b{_OLD}", re.IGNORECASE)
_NEW = re.compile(
    r"\b(new|newer|improved|improvement|revised|revision|updated?|better|rewritten|rewrite|corrected|correction|fixed|"
    r"optimi[sz]ed|enhanced|refined|proposed|modified|instead|actually|wait|replacement|after|result|merged|combined)\b",
    re.IGNORECASE,
)
_DRAFT = re.compile(
    r"\b(old|older|current|original|originally|previous|existing|initial|before|earlier|prior|parent|baseline|drafts?|"
    r"first (attempt|try|version|idea|thought|pass|cut)|attempt|sketch|rough|preliminary|na[iï]ve|incorrect|wrong|"
    r"broken|bad|buggy|discarded?|rejected|outline|skeleton|pseudo-?code|examples?|usage|e\.g\.|for instance|sample|"
    r"excerpt|snippet|output|was)\b",
    re.IGNORECASE,
)
ATTEMPT = re.compile(
    r"\b(?:drafts?|attempts?|first (?:try|version|idea|thought|pass|cut)|discarded?|rejected|sketch|scratch)\b",
    re.IGNORECASE,
)
"""Words for a try that is not meant, which hardly say anything else."""
_EARLIER = "(?:old|older|current|original|previous|existing|earlier|initial|baseline|prior|parent)"
_CALLED_OLD = re.compile(
    rf"^\W*(?:(?:\w+ ){{0,3}}{_EARLIER} (?:\w+ )?(?:one|harness|version|code|program)\b"
    rf"|(?:the )?(?:{_EARLIER}|before|baseline for comparison|examples?|usage|example usage|usage example|output"
    r"|pseudo-?code|outline|skeleton|wrong|incorrect|broken)\W*$)",
    re.IGNORECASE,
)
"""A line that begins by calling what follows an old one, or says nothing but that or that it is an example."""
_IS_OLD = re.compile(
    rf"^\W*(?:\w+ ){{0,3}}{_EARLIER} (?:\w+ )?(?:one|harness|version|code|program|prompt|instructions?|text)\W*$",
    re.IGNORECASE,
)
"""A sentence that says nothing but that what follows is an old one."""
_HEADING = re.compile(r"^\s*(#|\*\*|<)|:\W*$")
_REMARK = re.compile(r"^\s*(#|//|--|/\*|<!--)+\s*(.*)$")
_LINES, _CHARACTERS, _FEW_WORDS = 4, 240, 4
SENTENCES = re.compile(r"(?<=[.;!?])\s+|\n")
"""Where one sentence ends and the next begins."""


def chosen(found: Sequence[Block], text: str, what: str) -> Block:
    """The block that is meant.

    Raises:
        UnparsableReplyError: if there is none, the only one is called a draft, or nothing tells which of several is
            meant.
    """
    if not found:
        raise UnparsableReplyError(f"there is no {what} in the reply", Reason.MISSING)
    lines = text.split("\n")
    said = [said_of(block, lines, found[place - 1].stop if place else 0) for place, block in enumerate(found)]
    if len(found) == 1:
        if said[0] == "draft" and named_a_draft(line_above(found[0], lines)):
            raise UnparsableReplyError(f"the only {what} in the reply is said not to be the new one", Reason.AMBIGUOUS)
        return found[0]
    for wanted in ("final", "new", "nothing"):
        kept = [block for block, each in zip(found, said, strict=True) if each == wanted]
        if len({block.body.strip() for block in kept}) == 1:
            return kept[-1]
        if kept:
            raise UnparsableReplyError(
                f"there are {len(kept)} different blocks, and nothing says which is the {what}; reply with one alone",
                Reason.AMBIGUOUS,
            )
    raise UnparsableReplyError(f"no block of the reply is said to be the new {what}", Reason.AMBIGUOUS)


def said_of(block: Block, lines: Sequence[str], since: int) -> Said:
    """What the label of a block, the lines in front of it back to line ``since``, and its first line say of it."""
    return said_in(_telling(block, lines, since))


def _telling(block: Block, lines: Sequence[str], since: int) -> str:
    """The first text that says something of a block; empty if none does. Of a line, its last sentence counts or, if
    that says nothing, an earlier one that is about the block as a whole.
    """
    sources: list[str] = [block.label]
    near = [line for line in lines[since : block.start] if line.strip()][-_LINES:]
    for place, line in enumerate(reversed(near)):
        if place == 0 or _HEADING.search(line):
            last, *earlier = reversed(SENTENCES.split(line[-_CHARACTERS:].strip()))
            sources += [last, *filter(_is_about_it, earlier)]
    remark = _REMARK.match(block.body.lstrip("\n").partition("\n")[0])
    if remark is not None and len(remark[2].split()) <= 6:
        sources.append(remark[2])
    return next((source for source in sources if said_in(source) != "nothing"), "")


def _is_about_it(sentence: str) -> bool:
    """Whether a sentence, with others after it, says what the block below is, and not only what an old one was like."""
    return said_in(sentence) in ("final", "new") or bool(ATTEMPT.search(sentence) or _IS_OLD.match(sentence))


def said_in(source: str) -> Said:
    """What a text says of a block. Its first telling word counts: "the improved form of the original" is new, "the
    original, before" is not.
    """
    first: list[tuple[int, Said]] = []
    patterns: tuple[tuple[re.Pattern[str], Said], ...] = ((_FINAL, "final"), (_NEW, "new"), (_DRAFT, "draft"))
    for pattern, word in patterns:
        match = pattern.search(source)
        if match is not None:
            first.append((match.start(), word))
    return min(first)[1] if first else "nothing"


def without_drafts(found: Sequence[Block], lines: Sequence[str]) -> list[Block]:
    """The blocks, which may all be meant, but for those that are called drafts or old ones. A heading that names drafts
    applies to all blocks below it until other text follows.
    """
    kept: list[Block] = []
    below = False
    for place, block in enumerate(found):
        since = found[place - 1].stop if place else 0
        if any(line.strip() for line in lines[since : block.start]):
            above = line_above(block, lines)
            below = named_a_draft(above) and _called_a_draft(above)
        if not (below or _called_a_draft(_telling(block, lines, since))):
            kept.append(block)
    return kept


def _called_a_draft(source: str) -> bool:
    """Whether a text says so of all that follows it, and does not just speak of examples, or of what was before."""
    return said_in(source) == "draft" and bool(ATTEMPT.search(source) or _CALLED_OLD.match(source))


def named_a_draft(line: str) -> bool:
    """Whether a line is a short heading that names a draft, and not a sentence that happens to have such a word."""
    return len(line.split()) <= _FEW_WORDS and bool(_HEADING.search(line)) and said_in(line) == "draft"


def line_above(block: Block, lines: Sequence[str]) -> str:
    """The nearest line in front of a block that is not blank."""
    return next((line for line in reversed(lines[: block.start]) if line.strip()), "")


def without(found: Sequence[Block], unlike: Callable[[Block], bool]) -> list[Block]:
    """The blocks that are not ``unlike`` what is looked for; if all are unlike it, all blocks."""
    return [block for block in found if not unlike(block)] or list(found)
