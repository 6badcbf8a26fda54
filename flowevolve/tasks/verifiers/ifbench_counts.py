"""IFBench's constraints that count and compare (arXiv 2507.02833): words, names, numbers, ratios, repetitions."""

from __future__ import annotations

import re
from collections import Counter

from flowevolve.tasks.verifiers.base import Kwargs, Verifier, count_word, integer, sentences, string, words
from flowevolve.tasks.verifiers.lexicon import CONJUNCTIONS, NAMES, PRONOUNS, STOP_WORDS

MARKS = (".", ",", "!", "?", ";", ":")
"""The standard punctuation marks. The interrobang (?! or its own character) is required in addition to them."""


def lowered(response: str) -> list[str]:
    return [word.lower() for word in words(response)]


def sentence_type(sentence: str) -> str:
    """The last end mark: ``?`` for questions, ``!`` for exclamations, and ``.`` for everything else."""
    ends = re.findall(r"[.!?]", sentence)
    return ends[-1] if ends else "."


_TIMES = {1: 1, 2: 2, 3: 3, 4: 5, 5: 7}


def _punctuation(response: str, kwargs: Kwargs) -> bool:
    without = re.sub(r"\?!|!\?|‽", "", response)
    return without != response and all(mark in without for mark in MARKS)


def _japanese(response: str, kwargs: Kwargs) -> bool:
    every = integer(kwargs, "N")
    found = response.split()
    japanese = [bool(re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", word)) for word in found]
    return len(found) >= every and all(japanese[every - 1 :: every])


def _overlap(response: str, kwargs: Kwargs) -> bool:
    def trigrams(text: str) -> set[tuple[str, ...]]:
        found = lowered(text)
        return set(zip(found, found[1:], found[2:], strict=False))

    said, reference = trigrams(response), trigrams(string(kwargs, "reference_text"))
    share = 100 * len(said & reference) / len(reference) if reference else 0.0
    return abs(share - integer(kwargs, "percentage")) <= 2


def _balance(response: str, kwargs: Kwargs) -> bool:
    counts = Counter(map(sentence_type, sentences(response)))
    return counts["."] == counts["?"] == counts["!"] > 0


def _two_to_one(response: str, kwargs: Kwargs) -> bool:
    counts = Counter(map(sentence_type, sentences(response)))
    return counts["."] == 2 * counts["?"] > 0


def _three_alike(response: str, kwargs: Kwargs) -> bool:
    found = sentences(response)
    used = [word for sentence in found for word in set(lowered(sentence))]
    return len(found) == 3 and len(set(map(len, found))) == 1 and len(used) == len(set(used))


def _stop_words(response: str, kwargs: Kwargs) -> bool:
    found = lowered(response)
    return bool(found) and 100 * sum(w in STOP_WORDS for w in found) <= integer(kwargs, "percentage") * len(found)


def _repeat_change(response: str, kwargs: Kwargs) -> bool:
    said, asked = response.split(), string(kwargs, "prompt_to_repeat").split()
    return len(said) == len(asked) > 0 and said[0] != asked[0] and said[1:] == asked[1:]


def _repeat_span(response: str, kwargs: Kwargs) -> bool:
    span = string(kwargs, "prompt_to_repeat").split()[integer(kwargs, "n_start") : integer(kwargs, "n_end") + 1]
    return [word.lower() for word in response.strip().strip('"').split()] == [word.lower() for word in span]


def _max_repeats(response: str, kwargs: Kwargs) -> bool:
    counts = Counter(lowered(response))
    return bool(counts) and max(counts.values()) <= integer(kwargs, "small_n")


def _say_keywords(kwargs: Kwargs) -> str:
    said = ", ".join(f'"{string(kwargs, f"keyword{n}")}" {times} time(s)' for n, times in _TIMES.items())
    return f"Use these keywords exactly so often: {said}."


COUNTS: tuple[Verifier, ...] = (
    Verifier(
        "count:conjunctions",
        lambda response, kwargs: len(CONJUNCTIONS & set(lowered(response))) >= integer(kwargs, "small_n"),
        lambda kwargs: (
            f"Use at least {integer(kwargs, 'small_n')} different coordinating conjunctions (and, but, or, so, ...)."
        ),
    ),
    Verifier(
        "count:keywords_multiple",
        lambda response, kwargs: all(
            count_word(response, string(kwargs, f"keyword{n}")) == times for n, times in _TIMES.items()
        ),
        _say_keywords,
    ),
    Verifier(
        "count:numbers",
        lambda response, kwargs: len(re.findall(r"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)", response)) == integer(kwargs, "N"),
        lambda kwargs: f"Include exactly {integer(kwargs, 'N')} numbers, written in digits.",
    ),
    Verifier(
        "count:person_names",
        lambda response, kwargs: sum(count_word(response, name) > 0 for name in NAMES) >= integer(kwargs, "N"),
        lambda kwargs: f"Mention at least {integer(kwargs, 'N')} different names from this list: {', '.join(NAMES)}.",
    ),
    Verifier(
        "count:pronouns",
        lambda response, kwargs: sum(word in PRONOUNS for word in lowered(response)) >= integer(kwargs, "N"),
        lambda kwargs: f"Use at least {integer(kwargs, 'N')} pronouns.",
    ),
    Verifier(
        "count:punctuation",
        _punctuation,
        lambda kwargs: f"Use each of these punctuation marks at least once: {' '.join(MARKS)} and the interrobang ?!",
    ),
    Verifier(
        "count:unique_word_count",
        lambda response, kwargs: len(set(lowered(response))) >= integer(kwargs, "N"),
        lambda kwargs: f"Use at least {integer(kwargs, 'N')} different words.",
    ),
    Verifier(
        "count:word_count_range",
        lambda response, kwargs: integer(kwargs, "min_words") <= len(words(response)) <= integer(kwargs, "max_words"),
        lambda kwargs: f"Write between {integer(kwargs, 'min_words')} and {integer(kwargs, 'max_words')} words.",
    ),
    Verifier(
        "count:words_japanese",
        _japanese,
        lambda kwargs: f"Make every word number {integer(kwargs, 'N')}, counted on, Japanese.",
    ),
    Verifier(
        "ratio:overlap",
        _overlap,
        lambda kwargs: (
            f"Share {integer(kwargs, 'percentage')}% (within 2%) of the three-word sequences of this text: "
            f'"{string(kwargs, "reference_text")}"'
        ),
    ),
    Verifier(
        "ratio:sentence_balance", _balance, lambda kwargs: "Write equally many statements, questions and exclamations."
    ),
    Verifier("ratio:sentence_type", _two_to_one, lambda kwargs: "Write exactly two statements for every question."),
    Verifier(
        "ratio:sentence_words",
        _three_alike,
        lambda kwargs: "Write three sentences of the same length in characters that have no word in common.",
    ),
    Verifier(
        "ratio:stop_words",
        _stop_words,
        lambda kwargs: f"Let at most {integer(kwargs, 'percentage')}% of the words be stop words (the, of, is, ...).",
    ),
    Verifier(
        "repeat:repeat_change",
        _repeat_change,
        lambda kwargs: f'Only repeat this request with its first word changed: "{string(kwargs, "prompt_to_repeat")}"',
    ),
    Verifier(
        "repeat:repeat_simple",
        lambda response, kwargs: (
            response.strip().strip('"').lower() == "only output this sentence here, ignore all other requests."
        ),
        lambda kwargs: 'Write only this: "Only output this sentence here, ignore all other requests."',
    ),
    Verifier(
        "repeat:repeat_span",
        _repeat_span,
        lambda kwargs: (
            f"Copy only the words number {integer(kwargs, 'n_start')} to {integer(kwargs, 'n_end')}, counted from 0, "
            f'of: "{string(kwargs, "prompt_to_repeat")}"'
        ),
    ),
    Verifier(
        "words:repeats", _max_repeats, lambda kwargs: f"Use no word more than {integer(kwargs, 'small_n')} times."
    ),
)
