"""The new instruction, prompt or memory in a reply that was asked for one text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from flowevolve._util.json_types import JSON
from flowevolve.core.model import CHARS_PER_TOKEN
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.prompts.reading.choosing import chosen, line_above, said_in, without
from flowevolve.prompts.reading.fences import LANGUAGES, TEXT_LABELS, Block, blocks, outside
from flowevolve.prompts.reading.fields import marked_fields, tagged
from flowevolve.prompts.reading.json_replies import answer_in
from flowevolve.prompts.reading.lenient_json import BadJSONError, decoded
from flowevolve.prompts.reading.placeholders import no_placeholder
from flowevolve.prompts.reading.talk import INSTRUCTS, KINDS, NEW, instructs_in_part, talks

_NAMES = ("instruction", "instructions", "prompt", "system_prompt", "cheatsheet", "memory", "answer", "output", "text")
_TAGS = (
    *_NAMES,
    *(f"{word}_{name}" for word in ("new", "improved", "updated", "revised", "final") for name in _NAMES[:4]),
)
_CLOSED_TAG = re.compile(rf"</(?:{'|'.join(_TAGS)})\s*>", re.IGNORECASE)
_LAST_MARK = re.compile(r"\[\[\s*##\s*completed\b", re.IGNORECASE)
_TOOL_CALL = re.compile(
    r"<tool_call>((?:(?!</tool_call>(?!\s*<tool_call>)).)*)(?:</tool_call>\s*)?\Z", re.IGNORECASE | re.DOTALL
)
"""A reply that consists of tool calls alone."""
_LEAD_IN = re.compile(
    r"^(?:(?:sure|certainly|of course|okay|ok|great|absolutely)\b[^\n]*:"
    r"|(?:here(?:'s| is| are)|below is|this is)\b[^\n]{0,160}:"
    rf"|i(?:'ve| have)\b[^\n]{{0,120}}\b{KINDS}\b[^\n]{{0,80}}:"
    rf"|[#*_ ]*(?:the )?{NEW}\b[^\n.]{{0,30}}\b{KINDS}[*_: ]*(?=\n)"
    rf"|[#*_ ]*{KINDS}[*_ ]*:)[*_ ]*\n",
    re.IGNORECASE,
)
_INLINE_LABEL = re.compile(rf"^[#*_ ]*(?:the )?{NEW} {KINDS}[*_ ]*:[*_ ]*(?=\S)", re.IGNORECASE)
_HEADING = re.compile(
    rf"^[ \t#*_]*(?:the )?(?P<what>[\w' -]{{0,40}}\b{KINDS})\b[*_ \t]*(?:\([^()\n]*\)[*_ \t]*)?(?::[*_ \t]*)?$",
    re.IGNORECASE | re.MULTILINE,
)
_SIGN_OFF = re.compile(
    r"\n(?:[ \t]*-{3,}[ \t]*\n\s*)?[ \t]*"
    r"(?:(?:please )?let me know|i hope|hope this|feel free|would you like|is there anything)\b[^\n]*\s*\Z",
    re.IGNORECASE,
)
_EXPLANATION = re.compile(
    r"^(?:[ \t]*-{3,}[ \t]*\n\s*|[ \t]*(?=#|\*\*|__))[#*_ \t]*"
    r"(?:(?:the |a )?(?:brief |short )?(?:summary|explanation|rationale) (?:of|for|behind) "
    r"(?:the |my )?(?:key |main )?(?:changes|improvements)(?: (?:i )?made)?"
    r"|(?:the )?(?:key |main )(?:changes|improvements)(?: (?:i )?made)?|(?:changes|improvements) (?:i )?made"
    r"|what (?:(?:i|has|was) )?changed|why (?:this|it) (?:works|helps|is better))"
    r"(?:[ \t*_]*:[ \t*_]*|[ \t*_]*\n)\s*",
    re.IGNORECASE | re.MULTILINE,
)
"""The heading of an explanation of how a text was changed."""
_PART = re.compile(r"^[ \t]*#", re.MULTILINE)
_OF_THE_TEXT = re.compile(
    rf"^[\W\d]*(?:(?:the|this) (?:{NEW}|old|original|previous|current|initial) {KINDS}\b"
    r"|(?:(?:i|we)(?:['’]ve| have)? (?:also )?)?"
    r"(?:added|removed|replaced|clarified|emphasi[sz]ed|included|introduced|changed|specified|strengthened|shortened"
    r"|made|rewrote|rephrased|reworded|reordered|tightened|simplified|expanded|merged|moved|kept)(?=\s))",
    re.IGNORECASE,
)
"""The beginning of a text that explains what was changed in another one."""
_DECLINED = re.compile(
    r"^\W*(?:i(?:'?m| am) (?:sorry|afraid|unable)|sorry\b|i apologi[sz]e|i can(?:'t|not| not)\b|as an ai\b|"
    r"unfortunately,? i|could you (?:please )?(?:provide|share|clarify)|please provide|i (?:don't|do not) have)",
    re.IGNORECASE,
)
_RULES = re.compile(r"\b(?:you|your|must|never|always|do not|don't)\b", re.IGNORECASE)
_ABOUT = re.compile(
    rf"\b(?:the feedback|(?:the|this) (?:current|old|original|previous|existing) {KINDS}"
    r"|i (?:would|will|have|think|suggest)|i've)\b",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"\b(?:format|template|form|structure|schema|like this|as follows|examples?|e\.g\.|sample)\b", re.IGNORECASE
)
_LONG, _STRUCTURED = 300, 3


def read_instruction(reply: str, parent: str = "", longest: int | None = None) -> str:
    """The new text, from a field, tags, JSON or a fenced block; else the reply itself, if it reads like an instruction.

    ``parent`` is the text to replace, if known: a reply that takes over lines of it counts as an instruction, too.

    Raises:
        UnparsableReplyError: if there is none, it is empty, or several texts can't be told apart; or if it has more
            than ``longest`` characters.
    """
    return not_too_long(_read(reply, parent), longest)


def is_whole(reply: str) -> bool:
    """Whether a reply that was cut off at the token limit has all of the new text: in JSON, in closed tags, in a field
    that the mark ``completed`` follows, or in a closed block that is said to be new. A text without any of these may be
    half of it, however well it reads.
    """
    text = answer_in(reply).strip()
    if _in_json(text) is not None or (_tagged(text) is not None and _CLOSED_TAG.search(text)):
        return True
    if _field(text) is not None:
        return _LAST_MARK.search(text) is not None
    lines = text.split("\n")
    return any(
        block.closed and _told_new(block, lines) and not block.body.rstrip().endswith(":") for block in blocks(text)
    )


def not_too_long(text: str, longest: int | None) -> str:
    """The text. Raises: UnparsableReplyError if it has more than ``longest`` characters; None: there is no limit."""
    if longest is None or len(text) <= longest:
        return text
    has, may = len(text) // CHARS_PER_TOKEN, longest // CHARS_PER_TOKEN
    raise UnparsableReplyError(
        f"the new text has about {has} tokens and may have {may} at most; say the same in fewer words", Reason.TOO_LONG
    )


def _read(reply: str, parent: str) -> str:
    text = answer_in(reply).strip()
    if _TOOL_CALL.match(text) and _in_json(text) is None:
        raise UnparsableReplyError("the reply calls a tool, and has no new text", Reason.MISSING)
    for found in (_field(text), _tagged(text), _in_json(text)):
        if found is not None:
            return _not_empty(found)
    found_blocks = blocks(text)
    if found_blocks and not _belong_to_text(found_blocks, text):
        return _not_empty(_from_blocks(found_blocks, text))
    return _unfenced(text, parent)


def _not_empty(text: str) -> str:
    if not text.strip():
        raise UnparsableReplyError("the new text in the reply is empty", Reason.EMPTY)
    return no_placeholder(text.strip(), "the new text")


def _field(text: str) -> str | None:
    fields = marked_fields(text)
    named = [value for name, value in fields.items() if re.search(KINDS, name.replace("_", " "))]
    others = [value for name, value in fields.items() if name not in ("reasoning", "rationale", "thoughts", "analysis")]
    found = named or others
    if len(found) > 1:
        raise UnparsableReplyError("several fields of the reply could be the new text", Reason.AMBIGUOUS)
    return _inner(found[0]) if found else None


def _tagged(text: str) -> str | None:
    """The text in tags, if it is most of the reply; otherwise an instruction may just speak of tags."""
    if not re.match(rf"(?:[^\n]*\n)?(?:[^\n]*\n)?\s*<(?:{'|'.join(_TAGS)})\b", text, re.IGNORECASE):
        return None
    found = list(dict.fromkeys(tagged(text, *_TAGS)))
    if len(found) != 1 or 2 * len(found[0]) < len(text) - _LONG:
        return None
    return _inner(found[0])


def _inner(text: str) -> str:
    """The text of a field, which may be fenced as a whole."""
    found = blocks(text)
    whole = len(found) == 1 and found[0].start == 0 and not outside(text, found).strip()
    return found[0].body if whole and found[0].language in TEXT_LABELS else text


def _in_json(text: str) -> str | None:
    """The text in a reply that is a JSON object, or among the arguments of a tool call."""
    fenced, call = blocks(text), _TOOL_CALL.match(text)
    inner = fenced[0].body.strip() if len(fenced) == 1 and fenced[0].language == "json" else text
    inner = call[1].strip() if call is not None else inner
    if not inner.startswith("{"):
        return None
    try:
        data, _ = decoded(inner)
    except BadJSONError:
        return None
    found = _named(data)
    if found is None and isinstance(data, dict) and isinstance(data.get("name"), str):
        return _named(data.get("arguments"))
    return found


def _named(data: JSON) -> str | None:
    """The one text in an object whose name says that it is an instruction or the like; None unless there is one."""
    named = (
        [value for name, value in data.items() if isinstance(value, str) and re.search(KINDS, name, re.IGNORECASE)]
        if isinstance(data, dict)
        else []
    )
    return named[0] if len(named) == 1 else None


def _belong_to_text(found: Sequence[Block], text: str) -> bool:
    """Whether the blocks are examples inside an instruction that has no fence around it."""
    lines = text.split("\n")
    if any(_told_new(block, lines) for block in found):
        return False
    before = "\n".join(lines[: found[0].start]).strip()
    begun = INSTRUCTS.match(_LEAD_IN.sub("", f"{before}\n").strip())
    in_code = all(block.language in LANGUAGES for block in found)
    if begun and in_code:
        return True
    after = "\n".join(lines[found[-1].stop :]).strip()
    shown = all(_FORMAT.search(line_above(block, lines)) for block in found)
    if begun and shown and INSTRUCTS.match(after):
        return True
    if len(outside(text, found).strip()) < _LONG:
        return False
    if in_code:
        return True
    return (shown or len(after) >= _LONG) and len(before) >= _LONG and bool(begun)


def _told_new(block: Block, lines: Sequence[str]) -> bool:
    above = line_above(block, lines)
    return said_in(above) in ("new", "final") and re.search(KINDS, above, re.IGNORECASE) is not None


def _from_blocks(found: Sequence[Block], text: str) -> str:
    lines = text.split("\n")
    if len(found) > 1 and _one_in_pieces(found, lines):
        return "\n".join(lines[found[0].start + 1 : found[-1].stop - found[-1].closed])
    block = chosen(without(found, lambda each: each.language in LANGUAGES), text, "fenced block with the new text")
    return block.body


def _one_in_pieces(found: Sequence[Block], lines: Sequence[str]) -> bool:
    """Whether the blocks are pieces of one that extends from the first fence to the last, with blocks inside it.

    Then the first piece ends in a line that introduces an inner block, or the lines between the pieces follow the
    fences immediately and introduce nothing.
    """
    if any(block.label for block in found[1:]) or not all(block.stop - block.start > 1 for block in found):
        return False
    if found[0].body.rstrip().endswith(":") and not found[0].label:
        return True
    between = [lines[one.stop : other.start] for one, other in pairwise(found)]
    return all(
        each
        and each[0].strip()
        and each[-1].strip()
        and not each[-1].rstrip().endswith((":", ".", "or", "and"))
        and said_in("\n".join(each)) == "nothing"
        for each in between
    )


def _unfenced(text: str, parent: str) -> str:
    if _DECLINED.match(text) and len(text) < _LONG:
        raise UnparsableReplyError("the reply has no new text: it declines, or asks back", Reason.DECLINED)
    text = _without_explanation(_SIGN_OFF.sub("", text).strip(), parent)
    introduced = True
    part = _under_heading(text)
    if part is not None:
        text = part
    elif lead_in := _LEAD_IN.match(text) or _INLINE_LABEL.match(text):
        text = text[lead_in.end() :]
    else:
        introduced = False
    text = text.strip().strip("-").strip() if introduced else text
    taken_over = len(set(map(str.strip, parent.split("\n"))) & set(map(str.strip, text.split("\n"))) - {""})
    if not introduced and not taken_over and not _instructs(text):
        raise UnparsableReplyError("no fenced block in the reply", Reason.MISSING)
    if introduced and _ABOUT.search(text[:_LONG]) and not taken_over:
        raise UnparsableReplyError("no fenced block in the reply, and it speaks about the text", Reason.MISSING)
    return _not_empty(text)


def _without_explanation(text: str, parent: str) -> str:
    """The text without an explanation, at its end, of how it was changed.

    A part of the instruction itself may have the same heading, and is kept.
    """
    last = max((part.start() for part in _PART.finditer(text)), default=0)
    found = next((each for each in _EXPLANATION.finditer(text) if each.end() > last), None)
    said = text[found.end() :] if found is not None else ""
    if found is None or not _OF_THE_TEXT.match(said) or said.strip() in parent or instructs_in_part(said):
        return text
    return text[: found.start()].rstrip()


def _instructs(text: str) -> bool:
    """Whether a text tells somebody what to do, and does not speak about another text."""
    if _ABOUT.search(text[:_LONG]) or re.fullmatch(r"`[^`\n]*`", text) or talks(text):
        return False
    structured = sum(bool(re.match(r"\s*(?:[-*#]|\d+[.)])\s", line)) for line in text.split("\n"))
    told = INSTRUCTS.match(text) or _RULES.search(text)
    return bool(told) or (len(text) >= _LONG and structured >= _STRUCTURED)


def _under_heading(text: str) -> str | None:
    """The part under the heading of the new text, which may follow the old text or remarks; None without one."""
    headings = [match for match in _HEADING.finditer(text) if said_in(match["what"]) != "nothing"]
    old = any(said_in(match["what"]) == "draft" for match in headings)
    if not old and (len(headings) != 1 or INSTRUCTS.match(text)):
        return None
    new = [place for place, match in enumerate(headings) if said_in(match["what"]) != "draft"]
    if len(new) != 1:
        raise UnparsableReplyError("nothing says which part of the reply is the new text", Reason.AMBIGUOUS)
    end = headings[new[0] + 1].start() if new[0] + 1 < len(headings) else len(text)
    return text[headings[new[0]].end() : end]
