"""How the world `rules` reads and words the rules of an instruction.

A line of an instruction states one rule, denies one ("Use commas freely."), or states none. Lines are recognized by the
words in which a rule is usually given, so that the verifiers' own sentences and ordinary paraphrases are understood
alike. All functions are pure, and their caches are bounded.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from flowevolve._util.json_types import JSON
from flowevolve.tasks.verifiers import Constraint


@dataclass(frozen=True)
class Statement:
    """A rule that an instruction states or denies."""

    rule: Constraint
    denied: bool = False

    @property
    def subject(self) -> str:
        """What the statement is about. Two different statements on the same subject contradict each other."""
        match self.rule.kwargs:
            case {"keywords": [word, *_]} | {"forbidden_words": [word, *_]} | {"keyword": word}:
                return f"word {word}"
            case _:
                return self.rule.id


Reader = Callable[[str], Constraint | None]

_QUOTED = re.compile(r"[\"“`]([^\"”`]+)[\"”`]|(?<!\w)['‘](.+?)['’](?!\w)")
_NUMBER = re.compile(r"\b\d{1,3}\b")
_LIST_MARK = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_REFUSAL = re.compile(r"\b(?:no|not|never|without|avoid|skip|leave out|don't|refrain)\b", re.IGNORECASE)
_UPPER_BOUND = re.compile(r"\b(?:less|fewer|at most|no more) than\b|\bat most\b", re.IGNORECASE)


def _quoted(line: str) -> list[str]:
    return [double or single for double, single in _QUOTED.findall(line)]


def _counted(rule_id: str, parameter: str, **fixed: JSON) -> Reader:
    """A reader of a rule with one number. It does not understand lines that set an upper bound."""

    def read(line: str) -> Constraint | None:
        number = _NUMBER.search(line)
        if number is None or _UPPER_BOUND.search(line):
            return None
        return Constraint(rule_id, {parameter: int(number[0]), **fixed})

    return read


def _quoting(rule_id: str, parameter: str, *, several: bool = False) -> Reader:
    """A reader of a rule with one quoted phrase, or with several quoted words."""

    def read(line: str) -> Constraint | None:
        phrases: list[JSON] = [*_quoted(line)]
        return Constraint(rule_id, {parameter: phrases if several else phrases[0]}) if phrases else None

    return read


def _plain(rule_id: str) -> Reader:
    return lambda line: Constraint(rule_id)


def _sections(line: str) -> Constraint | None:
    number, phrases = _NUMBER.search(_QUOTED.sub("", line)), _quoted(line)
    if number is None or not phrases:
        return None
    splitter = re.sub(r"\W*(?:\d+|X)$", "", phrases[0])
    return Constraint(
        "detectable_format:multiple_sections", {"section_spliter": splitter, "num_sections": int(number[0])}
    )


def _frequency(line: str) -> Constraint | None:
    number, words = _NUMBER.search(line), _quoted(line)
    if number is None or not words or _UPPER_BOUND.search(line):
        return None
    kwargs: dict[str, JSON] = {"keyword": words[0], "frequency": int(number[0]), "relation": "at least"}
    return Constraint("keywords:frequency", kwargs)


_READERS: tuple[tuple[re.Pattern[str], Reader], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), reader)
    for pattern, reader in (
        (r"\bcommas?\b", _plain("punctuation:no_comma")),
        (r"\bpostscript\b", _quoting("detectable_content:postscript", "postscript_marker")),
        (r"\b(?:end|finish|close)\b.*[\"'“]", _quoting("startend:end_checker", "end_phrase")),
        (r"\bplaceholders?\b", _counted("detectable_content:number_placeholders", "num_placeholders")),
        (r"\bhighlight", _counted("detectable_format:number_highlighted_sections", "num_highlights")),
        (r"\bbullets?\b", _counted("detectable_format:number_bullet_lists", "num_bullets")),
        (r"\bsections?\b", _sections),
        (r"\bparagraphs?\b", _counted("length_constraints:number_paragraphs", "num_paragraphs")),
        (r"\btitle\b", _plain("detectable_format:title")),
        (r"\bquotation marks?\b|\bdouble quotes\b", _plain("startend:quotation")),
        (
            r"\bcapitals?\b|\bupper ?case\b",
            _counted("change_case:capital_word_frequency", "capital_frequency", capital_relation="at least"),
        ),
        (r"\bword\b.*\b\d+ (?:or more )?times\b", _frequency),
        (r"\b\d+ (?:or more )?words\b", _counted("length_constraints:number_words", "num_words", relation="at least")),
        (
            r"\b(?:not|never|avoid|without|don't)\b.*\b(?:key)?words?\b",
            _quoting("keywords:forbidden_words", "forbidden_words", several=True),
        ),
        (
            r"\b(?:include|use|mention|contain)\b.*\b(?:key)?words?\b",
            _quoting("keywords:existence", "keywords", several=True),
        ),
    )
)
"""The readers of rules. The first pattern that matches a line decides what the line is about."""

_DENIABLE = {
    "detectable_format:title": "Leave out any title.",
    "startend:quotation": "Do not put quotation marks around the answer.",
    "punctuation:no_comma": "Use commas freely.",
}


@lru_cache(maxsize=16_384)
def read_statement(line: str) -> Statement | None:
    """The rule that one line states or denies; None if it states none that is understood."""
    line = _LIST_MARK.sub("", line)
    for pattern, reader in _READERS:
        if pattern.search(line):
            rule = reader(line)
            if rule is None:
                return None
            refused = _REFUSAL.search(line) is not None
            # The rule against commas is itself a ban, so a line without a refusal denies it.
            denied = rule.id in _DENIABLE and refused != (rule.id == "punctuation:no_comma")
            return Statement(rule, denied)
    return None


@dataclass(frozen=True)
class Reading:
    """What an instruction says: the different statements on each subject in their order, its number of lines, and how
    many of them are points of a list that state no rule.
    """

    by_subject: tuple[tuple[Statement, ...], ...]
    lines: int
    noise: int


@lru_cache(maxsize=4096)
def read_instruction(text: str) -> Reading:
    """Read all statements of an instruction. A statement that is repeated counts once, at its last place."""
    lines = [line for line in text.splitlines() if line.strip()]
    by_subject: dict[str, list[Statement]] = {}
    for line in lines:
        statement = read_statement(line)
        if statement is not None:
            said = by_subject.setdefault(statement.subject, [])
            said[:] = [*(other for other in said if other != statement), statement]
    noise = sum(_LIST_MARK.match(line) is not None and read_statement(line) is None for line in lines)
    return Reading(tuple(tuple(said) for said in by_subject.values()), len(lines), noise)


_REWORDED = {
    "punctuation:no_comma": "Never put a comma anywhere in the answer.",
    "detectable_format:title": "Start with a title in double angle brackets such as <<Good news>>.",
    "detectable_content:postscript": 'Add a postscript that starts with "{postscript_marker}" after the text.',
    "startend:end_checker": 'Finish every answer with exactly the words "{end_phrase}" and nothing after them.',
    "detectable_content:number_placeholders": "Leave at least {num_placeholders} placeholders in square brackets.",
    "detectable_format:number_bullet_lists": "The answer has exactly {num_bullets} bullet points in Markdown.",
    "detectable_format:number_highlighted_sections": "At least {num_highlights} passages are *highlighted* like this.",
    "keywords:existence": "Use these words somewhere: {keywords}.",
    "keywords:forbidden_words": "Avoid these words altogether: {forbidden_words}.",
    "keywords:frequency": 'Say the word "{keyword}" {frequency} or more times.',
    "length_constraints:number_words": "An answer has {num_words} or more words.",
    "startend:quotation": "The whole answer stands in double quotation marks.",
    "detectable_format:multiple_sections": 'Divide it into {num_sections} sections headed "{section_spliter} X".',
    "change_case:capital_word_frequency": "Write {capital_frequency} or more words in all capitals.",
    "length_constraints:number_paragraphs": "Split it into {num_paragraphs} paragraphs with *** between them.",
}

_SLIPS: Mapping[str, tuple[JSON, ...]] = {
    "postscript_marker": ("N.B.", "Note:"),
    "end_phrase": ("Best regards.", "We look forward to hearing from you."),
    "num_placeholders": (1,),
    "num_bullets": (4, 5, 2),
    "num_highlights": (1,),
    "keywords": (["client"], ["schedule"], ["risk"]),
    "forbidden_words": (["quite"], ["just"]),
    "frequency": (1, 2),
    "num_words": (40, 60),
    "num_sections": (1,),
    "capital_frequency": (1, 2),
    "num_paragraphs": (2, 4),
}
"""The wrong values that a hasty writer gives to a parameter."""


def reword(rule: Constraint) -> str:
    """State a rule in other words than its verifier does."""
    template = _REWORDED.get(rule.id)
    return (
        template.format(**{name: _shown(value) for name, value in rule.kwargs.items()}) if template else rule.describe()
    )


def _shown(value: JSON) -> str:
    return ", ".join(f'"{word}"' for word in value) if isinstance(value, list) else str(value)


def misstate(rule: Constraint, rng: random.Random) -> str:
    """State a rule with a wrong parameter; deny it if it has no parameters."""
    slips = [(name, value) for name in rule.kwargs for value in _SLIPS.get(name, ()) if value != rule.kwargs[name]]
    if not slips:
        return _DENIABLE.get(rule.id, rule.describe())
    name, value = rng.choice(slips)
    return Constraint(rule.id, {**rule.kwargs, name: value}).describe()


def happens(probability: float, rng: random.Random) -> bool:
    """Whether something with this probability happens. With probability 0, no random number is drawn, so that a world
    in which it never happens draws the same numbers as if it did not exist.
    """
    return probability > 0 and rng.random() < probability
