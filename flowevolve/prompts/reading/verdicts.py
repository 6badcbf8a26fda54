"""Verdicts of judges: one of some known words, or whatever word or scores a judge gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import TypeVar

from flowevolve._util.json_types import JSON
from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.prompts.reading.fences import blocks, outside
from flowevolve.prompts.reading.fields import lines_named, marked_fields, paragraphs_under, plain, tagged
from flowevolve.prompts.reading.json_replies import answer_in, read_json

Word = TypeVar("Word", bound=str)
Number = int | float
Verdict = str | int | float | list[int | float]
"""A word in lower case, a score, or the scores of several that were judged, in order."""

_NAMES = (
    (
        "final verdict",
        "final score",
        "final rating",
        "overall score",
        "overall rating",
        "total score",
        "final decision",
    ),
    ("verdict", "judgment", "judgement", "decision", "conclusion"),
    ("score", "scores", "rating", "ratings", "grade", "overall", "total"),
    ("final answer", "answer", "result", "label", "assessment", "output"),
)
"""The names that a verdict may have. The first group with a name that the reply uses counts."""
_N = r"[-+]?\d+(?:\.\d+)?"
_ONE = re.compile(rf"({_N})(?:\s*(?:/|out of)\s*\d+(?:\.\d+)?|\s*%|\s+points?)?", re.IGNORECASE)
_MORE = re.compile(rf"{_N}(?:\s*(?:,|;|&|\band\b|\s)\s*{_N})+", re.IGNORECASE)
_NUMBERS = re.compile(_N)
_TUPLE = re.compile(rf"[(\[]\s*({_N}(?:\s*,\s*{_N})+)\s*[)\]]")
_DOUBLE = re.compile(r"\[\[\s*([^\[\]\n]{1,30}?)\s*\]\]")
_EACH = re.compile(
    r"^[ \t>*_#-]*(?:assistant|response|answer|candidate|model|option|program|version)[ \t]*(?:#[ \t]*)?"
    r"(?P<who>[A-Z]|\d{1,2})\b[ \t*_]*(?:'s)?[ \t]*(?:score|rating)?[ \t*_]*[:=][ \t*_]*"
    rf"(?:(?:score|rating)[ \t*_]*[:=]?[ \t*_]*)?(?P<score>{_N})"
    r"(?:[ \t]*/[ \t]*\d+|[ \t]+out of \d+)?[ \t*_.]*(?:\(.*)?$",
    re.IGNORECASE | re.MULTILINE,
)
_GIVEN = re.compile(
    rf"\b(?:give|gives|given|rate|rated|score|scored|deserves?|gets|receives|rating)\b[^\d\n.]{{0,40}}?({_N})(?![\w.]*\d)(?!\s*(?:-|–|to|and|or)\s*\d)"
    rf"|({_N})[ \t]*(?:/[ \t]*\d+|out of \d+)",
    re.IGNORECASE,
)
_LEADING = re.compile(
    r"(yes|no|true|false|correct|incorrect|pass|fail|accept|reject)\b(?=[\s.,;:!*_]|$)", re.IGNORECASE
)
_KNOWN_WORDS = (
    "yes no true false correct incorrect pass fail passed failed accept reject accepted rejected approve approved "
    "valid invalid good bad better worse same new conflict conflicting orthogonal subsumed tie equal lgtm lbtm a b "
    "keep improve success neutral helpful harmful duplicate novel different similar unclear unchanged "
    "regression improvement"
)
_KNOWN = frozenset(_KNOWN_WORDS.split())
"""Words that are a verdict on their own, without a name before them."""
_CLAUSE = re.compile(r"\s[-–—]+\s|[.;:!?(]|,\s|$")
_NEGATIONS = frozenset({"not", "no", "never", "neither", "nor", "nothing", "none", "hardly", "cannot", "non"})
_LONGEST_LABEL = 3
"""The most words of a verdict in words."""


def read_word(reply: str, name: str, known: Collection[Word]) -> Word:
    """The word that a line such as ``**Verdict:** new`` gives.

    Raises:
        UnparsableReplyError: if there is none, or several that differ.
    """
    whole = answer_in(reply)
    text = outside(whole, blocks(whole))
    text = text if text.strip() else whole
    values = [*lines_named(text, f"final {name}")] or [*lines_named(text, name), *tagged(text, name)]
    values = [value for value in values if value] or paragraphs_under(text, [name], ["reason"])
    said = [_words(value) for value in values] or [_words(text)]
    found = {word for word in known for each in said if word.lower() in each}
    if len(found) == 1 and all(any(word.lower() in each for word in found) for each in said):
        return found.pop()
    wanted = f"'{name.capitalize()}: {' | '.join(known)}'"
    if len(found) > 1 and values:
        raise UnparsableReplyError(f"the reply says several of {wanted}", Reason.AMBIGUOUS)
    raise UnparsableReplyError(f"no line {wanted} in the reply", Reason.MISSING)


def _first_clause(value: str) -> str:
    return value[: end.start()] if (end := _CLAUSE.search(value)) else value


def _words(value: str) -> list[str]:
    """The words of a value's first clause, which comes before any reasons; none if that clause is long.

    Words after a negation such as 'not' are left out.
    """
    words = [word.strip("*_`\"'.,[]()").lower() for word in _first_clause(plain(value)).replace("’", "'").split()]
    said = takewhile(lambda word: word not in _NEGATIONS and not word.endswith("n't"), words)
    return [*said] if len(words) <= 2 * _LONGEST_LABEL else []


def read_verdict(reply: str) -> Verdict:
    """The score, the scores or the word that a judge's reply gives.

    What is called final counts first, then a first line of numbers alone, a named field (in JSON, tags or a line), a
    score for each of several, a last line of numbers, and finally what a sentence says. If the first of these that is
    there gives different verdicts, the reply is refused.

    Raises:
        UnparsableReplyError: if there is no verdict, or more than one.
    """
    text = answer_in(reply).strip()
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    ways: Sequence[Callable[[], Iterable[Verdict | None]]] = (
        lambda: map(value_of, lines_named(text, *_NAMES[0])),
        lambda: [_numbers_alone(lines[0])],
        lambda: map(value_of, _DOUBLE.findall(text)),
        lambda: [_in_json(text)],
        lambda: [value_of(value) for name, value in marked_fields(text).items() if name in sum(_NAMES, ())],
        *(partial_values(text, names) for names in _NAMES[1:3]),
        lambda: [_of_each(text)],
        *(partial_values(text, names) for names in _NAMES[3:]),
        lambda: [_numbers_alone(lines[-1])],
        lambda: [_scores(found) for found in _TUPLE.findall(lines[-1])],
        lambda: [_known(text)] if len(lines) == 1 else [],
        lambda: [found[1].lower() for line in lines[:1] if (found := _LEADING.match(line.lstrip("*_` ")))],
        lambda: [_number(one or other) for one, other in _GIVEN.findall(text)],
        lambda: [_known(lines[-1])],
    )
    for way in ways:
        found = [value for value in way() if value is not None]
        found = [value for value in found if not isinstance(value, str)] or found
        if found and all(value == found[0] for value in found):
            return found[0]
        if found:
            raise UnparsableReplyError(
                f"the reply gives different verdicts: {found[0]!r} and {next(v for v in found if v != found[0])!r}",
                Reason.AMBIGUOUS,
            )
    raise UnparsableReplyError("there is neither a score nor a verdict in the reply", Reason.MISSING)


def partial_values(text: str, names: Sequence[str]) -> Callable[[], Iterable[Verdict | None]]:
    """A function that finds the values of the fields with these names."""
    return lambda: [value_of(value) for value in [*lines_named(text, *names), *tagged(text, *names)]]


def value_of(value: str) -> Verdict | None:
    """What a field says: a number, several, or up to three words. None for a sentence."""
    numbers = _numbers_alone(value)
    if numbers is not None:
        return numbers
    double = _DOUBLE.search(value)
    if double is not None and len(_DOUBLE.findall(value)) == 1:
        return value_of(double[1])
    clause = _first_clause(value)
    leading = _numbers_alone(clause)
    if leading is not None:
        return leading
    words = [word for word in (each.strip("*_`\"'[]()") for each in clause.split()) if word]
    if any("/" in word or "|" in word or word == "or" for word in words):
        return None  # the choices that the prompt gave, and no verdict
    return " ".join(words).lower() if 0 < len(words) <= _LONGEST_LABEL and words[0][0].isalpha() else None


def _known(line: str) -> Verdict | None:
    words = [each.strip("*_`\"'[]().!#").lower() for each in line.split()]
    return " ".join(words) if 0 < len(words) <= 2 and words[-1] in _KNOWN and words[0] in _KNOWN | {"not"} else None


def _numbers_alone(line: str) -> Verdict | None:
    bare = line.strip().strip("*_`()[]. \t").strip()
    one = _ONE.fullmatch(bare)
    if one is not None:
        return _number(one[1])
    return _scores(bare) if _MORE.fullmatch(bare) else None


def _scores(text: str) -> Verdict:
    return [_number(each) for each in _NUMBERS.findall(text)]


def _number(text: str) -> Number:
    return float(text) if "." in text else int(text)


def _of_each(text: str) -> Verdict | None:
    """The scores of several that are judged one by one, in order; None if there are fewer than two."""
    found: dict[str, Number] = {}
    for match in _EACH.finditer(text):
        who, score = match["who"].upper(), _number(match["score"])
        if found.setdefault(who, score) != score:
            raise UnparsableReplyError(f"the reply gives {who} different scores", Reason.AMBIGUOUS)
    return [found[who] for who in sorted(found, key=lambda each: (len(each), each))] if len(found) > 1 else None


def _in_json(text: str) -> Verdict | None:
    if "{" not in text:
        return None
    with suppress(UnparsableReplyError):
        data = read_json(text)
        if isinstance(data, dict):
            return _field(data)
    return None


def _field(data: Mapping[str, JSON]) -> Verdict | None:
    by_name = {name.lower().replace("_", " "): value for name, value in data.items()}
    for names in _NAMES:
        for name in names:
            match by_name.get(name):
                case bool(said):
                    return "yes" if said else "no"
                case int() | float() as number:
                    return number
                case str(text):
                    return value_of(text)
                case list(values) if values and all(type(each) in (int, float) for each in values):
                    return [each for each in values if isinstance(each, int | float)]
    answers = [value for value in data.values() if isinstance(value, bool)]
    return ("yes" if answers[0] else "no") if len(answers) == 1 else None
