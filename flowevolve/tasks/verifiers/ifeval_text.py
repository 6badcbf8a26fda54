"""IFEval's constraints on words, letters, lengths, case and language (arXiv 2311.07911, appendix A)."""

from __future__ import annotations

import re

from flowevolve._util.errors import InputError
from flowevolve.tasks.verifiers.base import (
    Kwargs,
    Verifier,
    contains_word,
    count_word,
    holds,
    integer,
    paragraphs,
    quoted_list,
    sentences,
    string,
    strings,
    words,
)
from flowevolve.tasks.verifiers.language import LANGUAGES, looks_like


def _relation(kwargs: Kwargs, relation: str, number: str) -> str:
    named, limit = string(kwargs, relation), integer(kwargs, number)
    holds(0, named, limit)  # raises an InputError if there is no such relation
    return f"{named} {limit}"


def _number_paragraphs(response: str, kwargs: Kwargs) -> bool:
    parts = [part.strip() for part in re.split(r"\s?\*\*\*\s?", response.strip())]
    outer = [part for part in (parts[:1] + parts[-1:]) if not part] if len(parts) > 1 else []
    if any(not part for part in parts[1:-1]):
        return False
    return len(parts) - len(outer) == integer(kwargs, "num_paragraphs")


def _nth_paragraph_first_word(response: str, kwargs: Kwargs) -> bool:
    parts = paragraphs(response)
    nth = integer(kwargs, "nth_paragraph")
    if len(parts) != integer(kwargs, "num_paragraphs") or not 1 <= nth <= len(parts):
        return False
    first = words(parts[nth - 1])[:1]
    return bool(first) and first[0].lower() == string(kwargs, "first_word").lower()


def _language_name(kwargs: Kwargs) -> str:
    code = string(kwargs, "language")
    if code not in LANGUAGES:
        raise InputError(
            f"constraint language {code!r} is not one of those that can be recognized: {', '.join(LANGUAGES)}"
        )
    return LANGUAGES[code]


TEXT: tuple[Verifier, ...] = (
    Verifier(
        "keywords:existence",
        lambda response, kwargs: all(contains_word(response, word) for word in strings(kwargs, "keywords")),
        lambda kwargs: f"Include these keywords in the answer: {quoted_list(strings(kwargs, 'keywords'))}.",
    ),
    Verifier(
        "keywords:forbidden_words",
        lambda response, kwargs: not any(contains_word(response, word) for word in strings(kwargs, "forbidden_words")),
        lambda kwargs: f"Do not use any of these words: {quoted_list(strings(kwargs, 'forbidden_words'))}.",
    ),
    Verifier(
        "keywords:frequency",
        lambda response, kwargs: holds(
            count_word(response, string(kwargs, "keyword")), string(kwargs, "relation"), integer(kwargs, "frequency")
        ),
        lambda kwargs: (
            f'Use the word "{string(kwargs, "keyword")}" {_relation(kwargs, "relation", "frequency")} times.'
        ),
    ),
    Verifier(
        "keywords:letter_frequency",
        lambda response, kwargs: holds(
            response.lower().count(string(kwargs, "letter").lower()),
            string(kwargs, "let_relation"),
            integer(kwargs, "let_frequency"),
        ),
        lambda kwargs: (
            f'Let the character "{string(kwargs, "letter")}" appear '
            f"{_relation(kwargs, 'let_relation', 'let_frequency')} times, small or large."
        ),
    ),
    Verifier(
        "length_constraints:number_words",
        lambda response, kwargs: holds(len(words(response)), string(kwargs, "relation"), integer(kwargs, "num_words")),
        lambda kwargs: f"Write {_relation(kwargs, 'relation', 'num_words')} words.",
    ),
    Verifier(
        "length_constraints:number_sentences",
        lambda response, kwargs: holds(
            len(sentences(response)), string(kwargs, "relation"), integer(kwargs, "num_sentences")
        ),
        lambda kwargs: f"Write {_relation(kwargs, 'relation', 'num_sentences')} sentences.",
    ),
    Verifier(
        "length_constraints:number_paragraphs",
        _number_paragraphs,
        lambda kwargs: f"Write exactly {integer(kwargs, 'num_paragraphs')} paragraphs, divided by the line ***.",
    ),
    Verifier(
        "length_constraints:nth_paragraph_first_word",
        _nth_paragraph_first_word,
        lambda kwargs: (
            f"Write exactly {integer(kwargs, 'num_paragraphs')} paragraphs with blank lines between them, and begin "
            f'paragraph {integer(kwargs, "nth_paragraph")} with the word "{string(kwargs, "first_word")}".'
        ),
    ),
    Verifier(
        "change_case:english_capital",
        lambda response, kwargs: response.isupper(),
        lambda kwargs: "Write everything in capital letters only.",
    ),
    Verifier(
        "change_case:english_lowercase",
        lambda response, kwargs: response.islower(),
        lambda kwargs: "Write everything in lowercase only.",
    ),
    Verifier(
        "change_case:capital_word_frequency",
        lambda response, kwargs: holds(
            sum(word.isupper() for word in words(response)),
            string(kwargs, "capital_relation"),
            integer(kwargs, "capital_frequency"),
        ),
        lambda kwargs: (
            f"Write {_relation(kwargs, 'capital_relation', 'capital_frequency')} words in all capital letters."
        ),
    ),
    Verifier(
        "language:response_language",
        lambda response, kwargs: looks_like(response, string(kwargs, "language")),
        lambda kwargs: f"Write the whole answer in {_language_name(kwargs)} and in no other language.",
    ),
)
