"""IFBench's constraints on how words and sentences follow each other (arXiv 2507.02833)."""

from __future__ import annotations

import re
from itertools import pairwise
from string import ascii_lowercase

from flowevolve.tasks.verifiers.base import Kwargs, Verifier, contains_word, integer, sentences, string, words
from flowevolve.tasks.verifiers.ifbench_counts import lowered
from flowevolve.tasks.verifiers.lexicon import VERBS

_CLUSTER = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}", re.IGNORECASE)
_VOWELS = frozenset("aeiou")


def syllables(word: str) -> int:
    """Count groups of vowels without a silent e at the end; at least one. This is right for most English words."""
    groups = re.findall(r"[aeiouy]+", word.lower())
    silent = len(groups) > 1 and word.lower().endswith("e") and not word.lower().endswith(("le", "ee"))
    return max(1, len(groups) - silent)


def is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, int(number**0.5) + 1))


def _longest_alliteration(sentence: str) -> int:
    longest = run = 1
    for first, second in pairwise(lowered(sentence)):
        run = run + 1 if first[0] == second[0] else 1
        longest = max(longest, run)
    return longest


def _alliteration(response: str, kwargs: Kwargs) -> bool:
    found = [_longest_alliteration(sentence) for sentence in sentences(response)]
    return len(found) > 1 and all(first < second for first, second in pairwise(found))


def _increment(response: str, kwargs: Kwargs) -> bool:
    counts = [len(words(sentence)) for sentence in sentences(response)]
    step = integer(kwargs, "small_n")
    return len(counts) > 1 and all(second - first == step for first, second in pairwise(counts))


def _sentence_keyword(response: str, kwargs: Kwargs) -> bool:
    found, place = sentences(response), integer(kwargs, "N")
    return len(found) >= place and contains_word(found[place - 1], string(kwargs, "word"))


def _keyword_place(response: str, kwargs: Kwargs) -> bool:
    found, sentence, place = sentences(response), integer(kwargs, "n"), integer(kwargs, "m")
    if len(found) < sentence:
        return False
    said = lowered(found[sentence - 1])
    return len(said) >= place and said[place - 1] == string(kwargs, "keyword").lower()


def _alphabet(response: str, kwargs: Kwargs) -> bool:
    firsts = [word[0] for word in lowered(response)]
    if not firsts or firsts[0] not in ascii_lowercase:
        return False
    start = ascii_lowercase.index(firsts[0])
    return all(first == ascii_lowercase[(start + n) % 26] for n, first in enumerate(firsts))


def _last_first(response: str, kwargs: Kwargs) -> bool:
    found = [lowered(sentence) for sentence in sentences(response)]
    return len(found) > 1 and all(first[-1] == second[0] for first, second in pairwise(found))


def _paragraph_frame(response: str, kwargs: Kwargs) -> bool:
    lines = [lowered(line) for line in response.splitlines() if words(line)]
    return bool(lines) and all(line[0] == line[-1] for line in lines)


def _second_word(response: str, kwargs: Kwargs) -> bool:
    found, keyword = lowered(response), string(kwargs, "keyword").lower()
    return len(found) >= 3 and found[1] == found[-2] == keyword


SEQUENCES: tuple[Verifier, ...] = (
    Verifier(
        "sentence:alliteration_increment",
        _alliteration,
        lambda kwargs: "Let each sentence have a longer run of words with the same first letter than the one before.",
    ),
    Verifier(
        "sentence:increment",
        _increment,
        lambda kwargs: f"Let each sentence have exactly {integer(kwargs, 'small_n')} more words than the one before.",
    ),
    Verifier(
        "sentence:keyword",
        _sentence_keyword,
        lambda kwargs: f'Use the word "{string(kwargs, "word")}" in sentence number {integer(kwargs, "N")}.',
    ),
    Verifier(
        "words:keywords_specific_position",
        _keyword_place,
        lambda kwargs: (
            f'Make "{string(kwargs, "keyword")}" the word number {integer(kwargs, "m")} of sentence number '
            f"{integer(kwargs, 'n')}."
        ),
    ),
    Verifier(
        "words:alphabet",
        _alphabet,
        lambda kwargs: "Start each word with the letter of the alphabet that follows the last word's, A after Z.",
    ),
    Verifier(
        "words:consonants",
        lambda response, kwargs: all(_CLUSTER.search(word) for word in words(response)),
        lambda kwargs: "Use only words with two or more consonants next to each other.",
    ),
    Verifier(
        "words:last_first", _last_first, lambda kwargs: "Start each sentence with the last word of the sentence before."
    ),
    Verifier(
        "words:no_consecutive",
        lambda response, kwargs: all(first[0] != second[0] for first, second in pairwise(lowered(response))),
        lambda kwargs: "Never start two words in a row with the same letter.",
    ),
    Verifier(
        "words:odd_even_syllables",
        lambda response, kwargs: all(
            syllables(first) % 2 != syllables(second) % 2 for first, second in pairwise(words(response))
        ),
        lambda kwargs: "Alternate between words with an odd and with an even number of syllables.",
    ),
    Verifier(
        "words:palindrome",
        lambda response, kwargs: sum(len(word) >= 5 and word == word[::-1] for word in lowered(response)) >= 10,
        lambda kwargs: "Include at least 10 palindromes that are single words of at least 5 letters.",
    ),
    Verifier(
        "words:paragraph_last_first",
        _paragraph_frame,
        lambda kwargs: "End each paragraph with the word it started with, one line per paragraph.",
    ),
    Verifier(
        "words:prime_lengths",
        lambda response, kwargs: all(is_prime(len(word)) for word in words(response)),
        lambda kwargs: "Use only words whose length is a prime number.",
    ),
    Verifier(
        "words:start_verb",
        lambda response, kwargs: not VERBS.isdisjoint(lowered(response)[:1]),
        lambda kwargs: "Start with a verb.",
    ),
    Verifier(
        "words:vowel",
        lambda response, kwargs: len(_VOWELS & set(response.lower())) <= 3,
        lambda kwargs: "Use at most three different vowels in all words together.",
    ),
    Verifier(
        "words:words_position",
        _second_word,
        lambda kwargs: f'Make "{string(kwargs, "keyword")}" the second word and the second to last word.',
    ),
)
