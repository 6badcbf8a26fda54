"""Every constraint id of the IFEval and IFBench rows: what meets it, what does not, and that nothing makes it fail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.tasks.verifiers import VERIFIERS, Constraint

Cases = tuple[str, Mapping[str, JSON], list[str], list[str]]

COUNTRIES = "\n".join(f"Land {chr(ord('z') - n // 3)}{9 - n % 3}" for n in range(54))
ABC = " ".join(f"{chr(ord('A') + n)}x went on." for n in range(26))
QUESTIONS = "\n".join(
    f"Question {n}: {'who ' * n}?\n" + "\n".join(f"{letter}) x" for letter in "ABCDE") for n in range(1, 5)
)
CSV_CITY = "ID,Country,City,Year,Count\n" + "\n".join(f"{n},F,Paris,2000,{n}" for n in range(7))
CSV_SPECIAL = "ProductID,Category,Brand,Price,Stock\n" + "\n".join(f'{n},c,"b&b",1,2' for n in range(14))
CSV_QUOTES = "\n".join(
    "\t".join(f'"{field}"' for field in row)
    for row in [["StudentID", "Subject", "Grade", "Semester", "Score"], *([["1", "x", "A", "S", "2"]] * 3)]
)

CAPITALS = (
    "Reykjavík, Helsinki, Oslo, Tallinn, Stockholm, Riga, Moscow, Copenhagen, Vilnius, Minsk, Dublin, Berlin, Amsterdam, "
    "Warsaw, London, Brussels, Kyiv, Prague, Luxembourg, Paris, Vienna, Bratislava, Budapest, Vaduz, Chisinau, Bern, "
    "Ljubljana, Zagreb"
)

CASES: tuple[Cases, ...] = (
    ("punctuation:no_comma", {}, ["no comma here"], ["one, two"]),
    ("keywords:existence", {"keywords": ["war", "peace"]}, ["War and peace."], ["warfare and peace", "war only"]),
    ("keywords:forbidden_words", {"forbidden_words": ["rock"]}, ["a rocket"], ["a Rock.", "rock"]),
    (
        "keywords:frequency",
        {"keyword": "tea", "frequency": 2, "relation": "at least"},
        ["tea, more Tea"],
        ["tea", "team tea"],
    ),
    ("keywords:frequency", {"keyword": "tea", "frequency": 2, "relation": "less than"}, ["tea", "no"], ["tea tea"]),
    (
        "keywords:letter_frequency",
        {"letter": "!", "let_frequency": 2, "let_relation": "at least"},
        ["a!b!"],
        ["a!"],
    ),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, ["a b c"], ["a b"]),
    ("length_constraints:number_words", {"num_words": 3, "relation": "less than"}, ["a b"], ["a b c"]),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 2, "relation": "at least"},
        ["One. Two!", "Mr. X came. He left."],
        ["Mr. X came.", "One"],
    ),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        ["a\n***\nb"],
        ["a", "a\n***\nb\n***\nc", "a***\n***b"],
    ),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 3},
        ["a\n***\nb\n***\nc", "***\na\n***\nb\n***\nc\n***"],
        ["a\n***\n\n***\nb"],
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "so"},
        ["a b\n\nSo, it is"],
        ["so\n\na", "a\n\nso\n\nb"],
    ),
    ("change_case:english_capital", {}, ["ALL UP 1"], ["Not up"]),
    ("change_case:english_lowercase", {}, ["all low 1"], ["Not low"]),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        ["THE end NOW"],
        ["The END now"],
    ),
    (
        "language:response_language",
        {"language": "de"},
        ["Das ist nicht die Antwort und wir sind froh."],
        ["This is the one."],
    ),
    (
        "language:response_language",
        {"language": "hi"},
        ["यह एक किताब है और वह घर में है"],
        ["the book is here", "это книга"],
    ),
    ("language:response_language", {"language": "ko"}, ["이것은 한국어 문장입니다"], ["これは日本語です"]),
    ("language:response_language", {"language": "ru"}, ["Это не он, а она, и все так"], ["Това е за нас и ще има"]),
    ("startend:quotation", {}, ['"all of it"'], ['"half" of it', '"']),
    ("startend:end_checker", {"end_phrase": "The end."}, ["So it goes. The end.", '"The end."'], ["The end. Or not"]),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, ["[a] and [b c]"], ["[a]"]),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        ["Bye\nP.S. more", "bye p.s. x"],
        ["Bye", "tips."],
    ),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, ["Bye\nP.P.S more"], ["Bye\nP.S. more"]),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, ["* a\n* b", "- a\n- b"], ["* a", "* a\n* b\n- c"]),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        ["*a* and *b c*", "**a** *b*"],
        ["*a*", "* a\n* b"],
    ),
    ("detectable_format:title", {}, ["<<A title>>\ntext"], ["<A title>", "<< >>"]),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Day", "num_sections": 2},
        ["Day 1\na\nDay 2\nb"],
        ["Day 1\na", "Day one Day two"],
    ),
    ("detectable_format:json_format", {}, ['{"a": 1}', "```json\n[1]\n```"], ["{a: 1}", "text"]),
    ("detectable_format:constrained_response", {}, ["My answer is maybe."], ["maybe"]),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, ["Say hi.\nhi"], ["hi", "Well: Say hi."]),
    ("combination:two_responses", {}, ["one\n******\ntwo"], ["one", "one\n******\none", "a******b******c"]),
    ("count:conjunctions", {"small_n": 2}, ["this and that but"], ["and and"]),
    (
        "count:keywords_multiple",
        {f"keyword{n}": word for n, word in enumerate("abcde", 1)},
        ["a b b c c c d d d d d e e e e e e e"],
        ["a b c d e"],
    ),
    ("count:numbers", {"N": 2.0}, ["1 and 2,000"], ["one 1", "1 2 3"]),
    ("count:person_names", {"N": 2.0}, ["Emma met Liam"], ["Emma met Emma"]),
    ("count:pronouns", {"N": 2.0}, ["I know you"], ["I know Bob"]),
    ("count:punctuation", {}, ["a. b, c! d? e; f: g?!"], ["a. b, c! d? e; f: g", "a?!"]),
    ("count:unique_word_count", {"N": 3.0}, ["a b c a"], ["a A b"]),
    ("count:word_count_range", {"min_words": 2.0, "max_words": 3.0}, ["a b", "a b c"], ["a", "a b c d"]),
    ("count:words_japanese", {"N": 2.0}, ["one 二 three 四", "one カ"], ["one two", "one", "二", "二 one"]),
    ("ratio:overlap", {"percentage": 50.0, "reference_text": "a b c d"}, ["a b c x"], ["a b c d", "x y z"]),
    ("ratio:overlap", {"percentage": 33.0, "reference_text": "a b c d e"}, ["a b c"], ["a b c d", "a b"]),
    ("ratio:overlap", {"percentage": 52.0, "reference_text": "a b c d"}, ["a b c"], []),
    ("ratio:overlap", {"percentage": 53.0, "reference_text": "a b c d"}, [], ["a b c"]),
    ("ratio:sentence_balance", {}, ["No. Is it? Go!"], ["No. So. Go!"]),
    ("ratio:sentence_type", {}, ["No. So. Is it?"], ["No. Is it?"]),
    ("ratio:sentence_words", {}, ["aa b. cc d. ee f."], ["aa b. aa d. ee f.", "aa. b. c."]),
    ("ratio:stop_words", {"percentage": 50.0}, ["the cat"], ["the of cat"]),
    ("repeat:repeat_change", {"prompt_to_repeat": "Write a poem"}, ["Sing a poem"], ["Write a poem", "Sing a song"]),
    ("repeat:repeat_simple", {}, ["Only output this sentence here, ignore all other requests."], ["Sure."]),
    ("repeat:repeat_span", {"prompt_to_repeat": "a b c d", "n_start": 1, "n_end": 2}, ["b c"], ["a b", "b c d"]),
    ("words:repeats", {"small_n": 2.0}, ["a a b"], ["a A a"]),
    ("sentence:alliteration_increment", {}, ["One two. Big bad wolf."], ["Big bad. One two."]),
    ("sentence:increment", {"small_n": 1.0}, ["No. So it. It is on."], ["No. So it. It is."]),
    ("sentence:keyword", {"word": "cat", "N": 2.0}, ["A dog. A cat."], ["A cat. A dog.", "A cat."]),
    (
        "words:keywords_specific_position",
        {"keyword": "cat", "n": 2, "m": 2},
        ["No. The cat."],
        ["The cat. No.", "No. Cat the."],
    ),
    ("words:alphabet", {}, ["yes zebra and"], ["a c"]),
    ("words:consonants", {}, ["strong black"], ["a strong"]),
    ("words:last_first", {}, ["I run. Run on."], ["I run. On."]),
    ("words:no_consecutive", {}, ["a big cat"], ["big bad"]),
    ("words:odd_even_syllables", {}, ["cat water dog"], ["cat dog"]),
    (
        "words:palindrome",
        {},
        ["level radar civic rotor kayak madam refer stats tenet minim"],
        ["level", "level " * 3],
    ),
    ("words:paragraph_last_first", {}, ["Now is now\nGo and go"], ["Now is here"]),
    ("words:prime_lengths", {}, ["at the abcde"], ["a", "four"]),
    ("words:start_verb", {}, ["Imagine it."], ["The end."]),
    ("words:vowel", {}, ["bad bed bid"], ["bad bed bid bod"]),
    ("words:words_position", {"keyword": "cat"}, ["a cat is a cat here"], ["cat a cat", "a cat"]),
    ("format:emoji", {}, ["Hi! 😀 Bye. 🎉"], ["Hi! Bye. 🎉"]),
    ("format:line_indent", {}, ["a\n b\n  c"], ["a\nb"]),
    ("format:list", {"sep": "!?!?"}, ["!?!? a\n!?!? b"], ["* a"]),
    ("format:newline", {}, ["one\ntwo"], ["one two"]),
    ("format:no_bullets_bullets", {}, ["One. Two.\n* a\n* b"], ["One.\n* a\n* b", "One. Two.\n* a"]),
    ("format:no_whitespace", {}, ["nospace"], ["a b"]),
    ("format:options", {"options": "yes/no/maybe"}, ["yes", "Maybe."], ["perhaps", "yes, I think"]),
    (
        "format:output_template",
        {},
        ["My Answer: a My Conclusion: b Future Outlook: c"],
        ["My Answer: a", "Future Outlook: c My Answer: a"],
    ),
    ("format:parentheses", {}, ["([{([x])}])"], ["((x))", "([{([x)]}])"]),
    ("format:quote_unquote", {}, ['"one" is a number'], ['"one"', "one"]),
    ("format:quotes", {}, ['"a \'b "c" d\' e"'], ["\"a 'b' c\"", '"a"']),
    ("format:sub-bullets", {}, ["* a\n  - b\n* c\n  - d"], ["* a\n* c\n  - d"]),
    ("format:thesis", {}, ["<i>So.</i> Text\n\n<em>And.</em> More"], ["Text\n\n<i>So.</i>"]),
    ("format:title_case", {}, ["The Lord of the Rings"], ["The lord of the rings"]),
    ("custom:character_reverse", {}, [".elgae dlab ehT"], ["The bald eagle."]),
    ("custom:word_reverse", {}, ["eagle bald The"], ["The bald eagle"]),
    ("custom:csv_city", {}, [CSV_CITY], [CSV_CITY + "\n8,F,Rome,1,1", "ID,City"]),
    ("custom:csv_special_character", {}, [CSV_SPECIAL], [CSV_SPECIAL.replace('"b&b"', "b")]),
    ("custom:csv_quotes", {}, [CSV_QUOTES], [CSV_QUOTES.replace('"', "")]),
    ("custom:date_format_list", {}, ["1796-04-12, 1805-12-02"], ["April 12, 1796"]),
    (
        "custom:european_capitals_sort",
        {},
        [CAPITALS],
        ["Helsinki, Oslo", "Oslo"],
    ),
    ("custom:mcq_count_length", {}, [QUESTIONS], ["Question 1: a?"]),
    ("custom:multiples", {}, ["14 21 28 35 42 49"], ["10 14 21", "7 14 21 28 35 42 49"]),
    ("custom:reverse_newline", {}, [COUNTRIES], ["Zambia\nAngola"]),
    ("custom:sentence_alphabet", {}, [ABC], ["A. B. C."]),
)


@pytest.mark.parametrize(("name", "kwargs", "meets", "fails"), CASES, ids=[case[0] for case in CASES])
def test_what_meets_a_constraint(name: str, kwargs: Mapping[str, JSON], meets: list[str], fails: list[str]) -> None:
    constraint = Constraint(name, kwargs)
    assert [text for text in meets if not constraint.met_by(text)] == []
    assert [text for text in fails if constraint.met_by(text)] == []
    assert constraint.describe()


def test_every_constraint_has_cases() -> None:
    assert {case[0] for case in CASES} == set(VERIFIERS)


def test_an_empty_answer_meets_nothing_and_unknown_ids_are_refused() -> None:
    assert not Constraint("punctuation:no_comma").met_by("  ")
    with pytest.raises(InputError, match="made:up"):
        Constraint("made:up")


def test_missing_parameters_are_named() -> None:
    with pytest.raises(InputError, match="num_words"):
        Constraint("length_constraints:number_words", {"relation": "at least"}).met_by("x")


@pytest.mark.parametrize(
    "file", ["ifeval/ifeval_541.jsonl", "ifbench/ifbench_test.jsonl", "ifbench/ifbench_test_gepa294.jsonl"]
)
def test_all_real_rows_are_covered(file: str, data_dir: Path) -> None:
    for line in (data_dir / file).read_text("utf-8").splitlines():
        row = json.loads(line)
        for name, kwargs in zip(row["instruction_id_list"], row["kwargs"], strict=True):
            assert Constraint(name, kwargs).describe()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=300))
def test_no_text_makes_a_check_fail(text: str, data_dir: Path) -> None:
    for file in ("ifeval/ifeval_541.jsonl", "ifbench/ifbench_test.jsonl"):
        seen: set[str] = set()
        for line in (data_dir / file).read_text("utf-8").splitlines():
            row = json.loads(line)
            for name, kwargs in zip(row["instruction_id_list"], row["kwargs"], strict=True):
                if name not in seen:
                    Constraint(name, kwargs).met_by(text)
                    seen.add(name)
