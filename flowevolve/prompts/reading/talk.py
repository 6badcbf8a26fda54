"""Tells texts that instruct somebody from talk: what models say around such a text, or in its place."""

from __future__ import annotations

import re

KINDS = r"(?:instructions?|prompts?|system[ _]prompts?|guidelines|text|version|memory|cheatsheet|playbook|rules?)"
"""What a text that tells somebody what to do may be called."""
NEW = r"(?:new|improved|revised|updated|final|rewritten|better|optimi[sz]ed|merged|refined|modified|complete)"
"""What a text that replaces another one may be called."""
_FIRST_WORDS = (
    "you your you're you'll task role goal version given when if always never do don't be answer read classify solve "
    "write extract determine think identify follow use respond reply return provide analyze analyse give produce "
    "generate summarize summarise translate carefully work check keep state explain consider make find compute "
    "calculate list name put assign label decide choose select avoid ensure instruction instructions prefer output "
    "complete convert rewrite review evaluate break start begin stick say show match"
)
INSTRUCTS = re.compile(
    rf"^[\W\d]*(?:(?:{'|'.join(_FIRST_WORDS.split())})\b|act as\b|as an?\b|for (?:each|every|any)\b|first,? )",
    re.IGNORECASE,
)
"""The beginning of a text that tells somebody what to do."""
_KEPT = rf"(?:it|(?:the|this|your) {KINDS})"
_TALKS = re.compile(
    r"^\W*(?:"
    + "|".join(
        (
            r"i\b(?! want you| need you|'d like you)",
            r"i'(?:m|d|ll|ve)\b(?! like you)",
            r"(?:sure|certainly|of course|okay|ok|great|absolutely|hello|hi|thanks?|(?:my )?apologies|got it)\b",
            r"(?:yes|no)[,.!]",
            r"no (?:problem|changes?)\b",
            r"do you\b",
            r"(?:don't|do not) change the (?:instructions?|prompt)\b",
            r"(?:we|first,? i) (?:need|should|must|can|have|want)\b",
            r"let me\b",
            r"looking at the (?:examples?|feedback|results?|errors?|outputs?)\b",
            r"what (?:would|do|is)\b",
            r"(?:how|could|would|can) (?:i|you|we)\b",
            r"it (?:seems|looks|appears)\b",
            r"if you'd like\b",
            r"there (?:is|are|isn't|aren't) (?:not|no|nothing)\b",
            r"the user\b",
            r"as an? (?:ai|(?:language )?model|assistant),? i\b",
            r"you(?:'re| are) (?:welcome|asking)\b",
            r"you (?:asked|want(?:ed)? me|gave)\b",
            r"you (?:(?:did|have) not|didn't|haven't) (?:provide|g[ia]ve|include|share|sen[dt]|show|tell)",
            r"your request\b",
            rf"(?:the|this|your) (?:current |existing )?{KINDS} (?:already|looks?|seems?|works?|covers?)\b",
            rf"(?:the|this|your) {KINDS} (?:is|are) (?:\w+ )?(?:good|fine|perfect|clear|great|ok|complete|optimal)\b",
            rf"(?:please )?(?:keep|leave|use|return) {_KEPT} (?:as (?:it|they) (?:is|are|was|were)|unchanged)\W*$",
        )
    )
    + ")",
    re.IGNORECASE,
)
"""The beginning of a text that answers, asks back, or says what its writer thinks."""
_THINKS = re.compile(r"^\W*(?:okay|ok|alright|hmm|so|well),? (?:let's|let me|the user|i need|so\b)", re.IGNORECASE)
"""The beginning of a text that only thinks aloud, up to its end."""
_SENTENCES = re.compile(r"(?<=[.!?:])\s+|\n+")
_MAY = re.compile(r"^\W*you (?:should|could|can|may|might|did|want)\b|^\W*your\b", re.IGNORECASE)
"""The beginning of a sentence that tells whoever asked what they may do."""
_ASKS = 80
"""A text of fewer characters than this that ends in a question mark is a question and no instruction."""


def instructs_in_part(text: str) -> bool:
    """Whether a sentence of a text tells somebody what to do."""
    return any(map(INSTRUCTS.match, _SENTENCES.split(text)))


def talks(text: str) -> bool:
    """Whether a text answers, asks or thinks aloud, and no sentence after its first one tells somebody what to do."""
    text = text.replace("’", "'")
    if _THINKS.match(text) or (len(text) < _ASKS and text.rstrip().endswith("?")):
        return True
    return bool(_TALKS.match(text)) and not any(
        INSTRUCTS.match(sentence) and not _TALKS.match(sentence) and not _MAY.match(sentence)
        for sentence in _SENTENCES.split(text)[1:]
    )
