"""Compares answers with the right ones: for question answering, mathematics and classification."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_FINAL = re.compile(r"(?:final\s+)?answer\s*(?:is\s*:?|:|=)\s*(.+)", re.IGNORECASE)
_LABEL = re.compile(
    r"^[ \t>*_#-]*(?:(?:so|thus|hence|therefore),?\s+)?(?:the\s+|my\s+)?" + _FINAL.pattern, re.IGNORECASE | re.MULTILINE
)
"""As `_FINAL`, but only at the beginning of a line."""
_TAGGED = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:\s*/\s*\d+)?")
_WITH_UNIT = re.compile(
    r"(?P<number>[^A-Za-z\\]*\d)[\s*_$]*(?:\\?%|\^\{?\\circ\}?|°"
    r"|(?:\\[,;: ]|~)*\\(?:text|mathrm)\{(?P<set>[^{}\d]*)\}|(?<!\d)(?P<unit>[A-Za-z]{2,}(?: [A-Za-z]{2,}){0,2}))"
    r"[\s$.\]*_]*"
)
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_UNITS = frozenset(
    _WORD.findall(
        "usd eur gbp jpy cny chf cad aud inr dollar dollars euro euros pound pounds yen yuan rupees cent cents "
        "percent pct share shares unit units point points second seconds sec secs minute minutes min mins hour "
        "hours hr hrs day days week weeks month months year years meter meters metre metres centimeter centimeters "
        "centimetre centimetres kilometer kilometers kilometre kilometres inch inches foot feet ft yard yards mile "
        "miles cm km gram grams kilogram kilograms kg lb lbs ounce ounces oz ton tons tonne tonnes liter liters "
        "litre litres degree degrees celsius fahrenheit kelvin radian radians mph kmh watt watts volt volts joule "
        "joules people"
    )
)
"""Words after a number that don't change its value, unlike 'tn', 'squared' or 'halves'."""
_WITHIN_UNITS = frozenset({"per", "square", "cubic"})
_AROUND = "*_`\"'$#= \t\n"
"""Characters around a number that are not part of it. Brackets are part of it, since accountants write -5 as '(5)'."""
_MATHS = re.compile(r"\\[()\[\]]")


def normalized(text: str) -> str:
    """The text in lower case without punctuation, articles and extra spaces, as SQuAD and HotpotQA compare answers."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> bool:
    """Whether two answers are the same once normalized."""
    return normalized(answer) == normalized(gold)


def token_f1(answer: str, gold: str) -> float:
    """The harmonic mean of precision and recall of normalized tokens. Yes, no and 'noanswer' match only themselves."""
    stated, expected = normalized(answer), normalized(gold)
    closed = {"yes", "no", "noanswer"}
    if stated != expected and (stated in closed or expected in closed):
        return 0.0
    tokens, wanted = stated.split(), expected.split()
    if not tokens or not wanted:
        return float(tokens == wanted)
    common = sum((Counter(tokens) & Counter(wanted)).values())
    return 2 * common / (len(tokens) + len(wanted))


def stated_answer(text: str) -> str:
    r"""The final answer that a text states: the last ``\boxed{…}``, else what follows the last 'answer:', else the last
    number, else the last line.
    """
    boxed = _last_boxed(text)
    if boxed is not None:
        return boxed
    finals = _FINAL.findall(text)
    if finals:
        return _bare(finals[-1])
    numbers = _NUMBER.findall(text)
    if numbers:
        return str(numbers[-1])
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def stated_number(text: str) -> str:
    """As `stated_answer`, for a number: if that answer is not a number, the last number given in a line that begins
    with 'answer:' is returned instead, if there is one.
    """
    found = stated_answer(text)
    if _last_boxed(text) is None and _number(without_unit(found)) is None:
        labelled = [_bare(each) for each in _LABEL.findall(text)]
        numbers = [each for each in labelled if _number(without_unit(each)) is not None]
        return numbers[-1] if numbers else found
    return found


def stated_text(text: str, *, number: bool) -> str:
    r"""The final answer that a text states in words: what is in the last ``<answer>`` tags, else in the last
    ``\boxed{…}``, else after the 'answer:' that decides, else the last line. If the answer may be a ``number``, the
    last number takes precedence over the last line.

    The 'answer:' that decides is the last one if it is a 'final answer', else the last one at the beginning of a line,
    else the last one. In a text of one line, only an 'answer:' at its beginning counts, and numbers don't.
    """
    tagged, boxed = _TAGGED.findall(text), _last_boxed(text)
    if tagged:
        return str(tagged[-1]).strip()
    if boxed is not None:
        return boxed
    lines = text.strip().splitlines()
    several = len(lines) > 1
    every = list(_FINAL.finditer(text)) if several else []
    last = every[-1:] if every and every[-1][0].lower().startswith("final") else []
    finals = [each[1] for each in last] or _LABEL.findall(text) or [each[1] for each in every]
    if finals:
        return _bare(finals[-1])
    numbers = _NUMBER.findall(text) if number and several else []
    return str(numbers[-1]) if numbers else lines[-1].strip() if lines else ""


def stated_line(text: str) -> str:
    """The rest of the line after the last 'answer:' of a text, or else the last line. If what follows that 'answer:' is
    not a list of single words, the last such list after an 'answer:' at the beginning of a line is returned instead, if
    there is one.
    """
    finals = _FINAL.findall(text)
    lists = [each for each in _LABEL.findall(text) if _is_list(each)]
    if lists and not _is_list(finals[-1]):
        return str(lists[-1]).strip()
    lines = text.strip().splitlines()
    return str(finals[-1] if finals else lines[-1] if lines else "").strip()


def decimal_of(text: str) -> Decimal | None:
    """Read a text as a number, without currency signs, per cent signs and separators; None if it is not a number."""
    cleaned = text.strip().strip("$€£% ").replace(",", "")
    return Decimal(cleaned) if re.fullmatch(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)", cleaned) else None


def same_number(answer: str, gold: str) -> bool:
    """Whether an answer is the same number as ``gold`` (an integer, decimal or simple fraction; a unit after the answer
    is ignored) or, if ``gold`` is not a number, the same text.
    """
    second = _number(gold)
    if second is None:
        return normalized(answer) == normalized(gold) != ""
    return _number(without_unit(answer)) == second


def is_number(text: str) -> bool:
    """Whether a text is an integer, a decimal or a simple fraction."""
    return _number(text) is not None


def without_unit(text: str) -> str:
    """A number without a known unit after it, and without quotes and the like around it; any other text unchanged."""
    text = text.strip()
    found = _WITH_UNIT.fullmatch(text)
    if found is not None and _is_unit(found["set"] or found["unit"]):
        text = found["number"]
    bare = _MATHS.sub("", text).replace("{,}", ",").strip(_AROUND)
    return bare if _number(text) is None is not _number(bare) and " " not in bare else text


def stated_label(text: str, labels: Sequence[str]) -> str | None:
    """The label that a text decides on: the only one that it names, or else the only one after its last 'answer:'.

    It is None if there is no such label. A label inside of a longer one does not count ('Sci' in 'Sci/Tech').
    """
    named = _labels_in(text, labels)
    if len(named) == 1:
        return named[0]
    for final in reversed(_FINAL.findall(text)):
        named = _labels_in(final, labels)
        if len(named) == 1:
            return named[0]
    return None


def _is_unit(text: str | None) -> bool:
    """Whether all words after a number are known units. This is so of a mere sign, which has no words."""
    words = set(_WORD.findall((text or "").lower()))
    return not words or (words <= _UNITS | _WITHIN_UNITS and not words <= _WITHIN_UNITS)


def _bare(text: str) -> str:
    """What follows 'answer:', without tags, marks and full stops around it."""
    tagged = _TAGGED.search(text)
    text = str(tagged[1]) if tagged is not None else text
    return text.strip().lstrip("*_`$ ").rstrip("*_`$. ")


def _is_list(text: str) -> bool:
    """Whether a text consists of single words separated by commas."""
    return all(len(each.split()) == 1 for each in text.strip(" \t*_`.").split(","))


def _labels_in(text: str, labels: Sequence[str]) -> list[str]:
    left = text
    found: list[str] = []
    for label in sorted(labels, key=len, reverse=True):
        pattern = re.compile(rf"(?<!\w){re.escape(label)}(?!\w)", re.IGNORECASE)
        if pattern.search(left):
            found.append(label)
            left = pattern.sub(" ", left)
    return found


def _last_boxed(text: str) -> str | None:
    start = text.rfind(r"\boxed{")
    if start < 0:
        return None
    depth = 0
    begin = start + len(r"\boxed{")
    for place in range(begin - 1, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[begin:place].strip()
    return None


def _number(text: str) -> Fraction | None:
    cleaned = re.sub(r"\\[dt]?frac\{(-?\d+)\}\{(\d+)\}", r"\1/\2", text.strip().strip("$ "))
    cleaned = cleaned.replace(",", "").replace(" ", "").rstrip(".")
    if not re.fullmatch(r"-?\d+(?:\.\d+)?(?:/\d+)?", cleaned):
        return None
    top, _, bottom = cleaned.partition("/")
    if bottom and int(bottom) == 0:
        return None
    return Fraction(top) / (Fraction(bottom) if bottom else 1)
