"""IFBench's constraints on layout, and its single custom tasks (arXiv 2507.02833)."""

from __future__ import annotations

import csv
import re
from itertools import pairwise

from flowevolve.tasks.verifiers.base import Kwargs, Verifier, sentences, string, words
from flowevolve.tasks.verifiers.lexicon import CAPITALS_BY_LATITUDE

_EMOJI = r"[\u2600-\u27bf\u2b00-\u2bff\U0001f1e6-\U0001faff]\ufe0f?"
_SMALL_WORDS = frozenset(
    ("a", "an", "and", "as", "at", "but", "by", "for", "from", "in", "nor", "of", "on", "or", "so", "the")
) | {"to", "up", "with", "yet"}
_OPENING = {"(": ")", "[": "]", "{": "}"}


def _lines(response: str) -> list[str]:
    return [line for line in response.splitlines() if line.strip()]


def _emoji(response: str, kwargs: Kwargs) -> bool:
    marked = re.sub(rf"\s*({_EMOJI})", r"\1", response)
    parts = re.split(rf"(?<=[.!?])(?!{_EMOJI})\s+", marked.strip())
    return all(re.search(rf"(?:{_EMOJI})$", part.strip()) for part in parts if words(part))


def _stairs(response: str, kwargs: Kwargs) -> bool:
    indents = [len(line) - len(line.lstrip()) for line in _lines(response)]
    return len(indents) > 1 and all(first < second for first, second in pairwise(indents))


def _sentences_then_bullets(response: str, kwargs: Kwargs) -> bool:
    head, _, tail = response.partition("\n*")
    bullets = re.findall(r"^\s*\*\s+\S", "*" + tail, re.MULTILINE) if tail else []
    return sum(sentence.endswith(".") for sentence in sentences(head)) >= 2 and len(bullets) >= 2


def _nesting(response: str, kwargs: Kwargs) -> bool:
    open_marks: list[str] = []
    deepest = 0
    for mark in re.findall(r"[()\[\]{}]", response):
        if mark in _OPENING:
            open_marks.append(_OPENING[mark])
            deepest = max(deepest, len(open_marks))
        elif not open_marks or open_marks.pop() != mark:
            return False
    return not open_marks and deepest >= 5


def _quotes_explained(response: str, kwargs: Kwargs) -> bool:
    parts = re.split(r"[\"“”]", response)
    return len(parts) >= 3 and len(parts) % 2 == 1 and all(words(part) for part in parts[2::2])


def _nested_quotes(response: str, kwargs: Kwargs) -> bool:
    plain = re.sub(r"(?<=\w)['’](?=\w)", "", response.replace("“", '"').replace("”", '"'))
    plain = plain.replace("‘", "'").replace("’", "'")
    open_marks: list[str] = []
    deepest = 0
    for mark in re.findall(r"[\"']", plain):
        if open_marks and open_marks[-1] == mark:
            open_marks.pop()
        else:
            open_marks.append(mark)
            deepest = max(deepest, len(open_marks))
    return not open_marks and deepest >= 3


def _sub_bullets(response: str, kwargs: Kwargs) -> bool:
    groups = re.split(r"^\s*\*\s+", response, flags=re.MULTILINE)[1:]
    return bool(groups) and all(re.search(r"^\s*-\s+\S", group, re.MULTILINE) for group in groups)


def _thesis(response: str, kwargs: Kwargs) -> bool:
    parts = [part.strip() for part in re.split(r"\n\s*\n", response) if words(part)]
    bodies = [re.sub(r"^(?:#+|<h\d>).*?(?:\n|</h\d>)\s*", "", part) for part in parts]
    return bool(bodies) and all(re.match(r"<(i|em)>.+?</\1>", body) for body in bodies if words(body))


def _title_case(response: str, kwargs: Kwargs) -> bool:
    found = [word for word in words(response) if word[0].isalpha()]
    return bool(found) and all(word[0].isupper() or word in _SMALL_WORDS for word in found)


def _reversed_words(response: str, kwargs: Kwargs) -> bool:
    said = [word.lower() for word in words(response)]
    return "eagle" in said and "bald" in said and said.index("eagle") < said.index("bald")


def _rows(response: str, delimiter: str) -> list[list[str]]:
    return list(csv.reader(_lines(re.sub(r"^```\w*\n|```$", "", response.strip())), delimiter=delimiter))


def _is_table(rows: list[list[str]], header: list[str], count: int) -> bool:
    head = [name.strip() for name in rows[0]] if rows else []
    return head == header and len(rows) == count + 1 and all(len(row) == len(header) for row in rows)


def _dates(response: str, kwargs: Kwargs) -> bool:
    dates = [date.strip() for date in response.strip().rstrip(".").split(",")]
    return len(dates) > 1 and all(re.fullmatch(r"1[78]\d\d-\d\d-\d\d", date) for date in dates)


def _capitals(response: str, kwargs: Kwargs) -> bool:
    said = [name.strip().lower() for name in response.strip().rstrip(".").split(",")]
    known = {"kiev": "kyiv", "reykjavík": "reykjavik", "luxembourg city": "luxembourg", "chișinău": "chisinau"}
    return [known.get(name, name) for name in said] == [name.lower() for name in CAPITALS_BY_LATITUDE]


def _questions(response: str, kwargs: Kwargs) -> bool:
    parts = re.split(r"^\s*\W*Question", response, flags=re.MULTILINE)[1:]
    stems = [re.split(r"^\s*\(?[A-Ea-e][).:]", part, flags=re.MULTILINE) for part in parts]
    lengths = [len(stem[0].strip()) for stem in stems]
    return len(stems) == 4 and all(len(stem) == 6 for stem in stems) and all(a < b for a, b in pairwise(lengths))


def _reverse_lines(response: str, kwargs: Kwargs) -> bool:
    lines = [line.strip(" *-.0123456789").lower() for line in _lines(response)]
    return len(lines) >= 50 and lines == sorted(lines, reverse=True)


LAYOUT: tuple[Verifier, ...] = (
    Verifier("format:emoji", _emoji, lambda kwargs: "End every sentence with an emoji."),
    Verifier(
        "format:line_indent", _stairs, lambda kwargs: "Indent each new line further than the one before, as stairs."
    ),
    Verifier(
        "format:list",
        lambda response, kwargs: response.count(string(kwargs, "sep")) > 1,
        lambda kwargs: f"Answer with a list of items and put {string(kwargs, 'sep')} where bullet points would be.",
    ),
    Verifier(
        "format:newline",
        lambda response, kwargs: all(len(line.split()) == 1 for line in _lines(response)),
        lambda kwargs: "Write each word on a line of its own.",
    ),
    Verifier(
        "format:no_bullets_bullets",
        _sentences_then_bullets,
        lambda kwargs: "Write at least two sentences that end in a period and then at least two bullet points with *.",
    ),
    Verifier(
        "format:no_whitespace",
        lambda response, kwargs: not re.search(r"\s", response.strip()),
        lambda kwargs: "Use no spaces or other whitespace.",
    ),
    Verifier(
        "format:options",
        lambda response, kwargs: (
            response.strip().strip('"').rstrip(".)").lower()
            in [option.strip(" .)").lower() for option in re.split(r"[/,]| or ", string(kwargs, "options"))]
        ),
        lambda kwargs: f"Answer with just one of these: {string(kwargs, 'options')}",
    ),
    Verifier(
        "format:output_template",
        lambda response, kwargs: bool(
            re.search(r"My Answer:\s*\S.*My Conclusion:\s*\S.*Future Outlook:\s*\S", response, re.DOTALL)
        ),
        lambda kwargs: "Use this template: My Answer: [answer] My Conclusion: [conclusion] Future Outlook: [outlook]",
    ),
    Verifier(
        "format:parentheses", _nesting, lambda kwargs: "Nest (parentheses [brackets {braces}]) at least 5 levels deep."
    ),
    Verifier(
        "format:quote_unquote",
        _quotes_explained,
        lambda kwargs: "Follow every quoted phrase with an explanation unquoted.",
    ),
    Verifier(
        "format:quotes",
        _nested_quotes,
        lambda kwargs: "Nest quotes at least 3 levels deep, double and single quotes in turn.",
    ),
    Verifier(
        "format:sub-bullets",
        _sub_bullets,
        lambda kwargs: "Use bullet points with * and under each at least one sub-bullet with -.",
    ),
    Verifier(
        "format:thesis",
        _thesis,
        lambda kwargs: "Begin each section with a thesis statement in HTML italics: <i>...</i>.",
    ),
    Verifier("format:title_case", _title_case, lambda kwargs: "Write everything in title case."),
    Verifier(
        "custom:character_reverse",
        lambda response, kwargs: "elgae" in response.lower(),
        lambda kwargs: "Write the sentence backwards letter by letter.",
    ),
    Verifier("custom:word_reverse", _reversed_words, lambda kwargs: "Write the sentence backwards word by word."),
    Verifier(
        "custom:csv_city",
        lambda response, kwargs: _is_table(_rows(response, ","), ["ID", "Country", "City", "Year", "Count"], 7),
        lambda kwargs: "Write CSV with the columns ID, Country, City, Year, Count, delimited by commas, and 7 rows.",
    ),
    Verifier(
        "custom:csv_special_character",
        lambda response, kwargs: (
            _is_table(_rows(response, ","), ["ProductID", "Category", "Brand", "Price", "Stock"], 14)
            and re.search(r'"[^"\n]*[^\w\s"][^"\n]*"', response) is not None
        ),
        lambda kwargs: (
            "Write CSV with the columns ProductID, Category, Brand, Price, Stock, delimited by commas, and 14 rows, "
            "with a special character in one field that stands in double quotes."
        ),
    ),
    Verifier(
        "custom:csv_quotes",
        lambda response, kwargs: (
            all(re.fullmatch(r'"[^"]*"(?:\t"[^"]*")*', line.strip()) for line in _lines(response))
            and _is_table(_rows(response, "\t"), ["StudentID", "Subject", "Grade", "Semester", "Score"], 3)
        ),
        lambda kwargs: (
            "Write CSV with the columns StudentID, Subject, Grade, Semester, Score, delimited by tabs, and 3 rows, "
            "every field in double quotes."
        ),
    ),
    Verifier("custom:date_format_list", _dates, lambda kwargs: "Write only dates as YYYY-MM-DD, separated by commas."),
    Verifier(
        "custom:european_capitals_sort",
        _capitals,
        lambda kwargs: "List all European capitals north of 45 degrees from north to south, separated by commas.",
    ),
    Verifier(
        "custom:mcq_count_length",
        _questions,
        lambda kwargs: "Write 4 questions, each labelled Question, each longer than the last, with 5 options each.",
    ),
    Verifier(
        "custom:multiples",
        lambda response, kwargs: [int(number) for number in re.findall(r"\d+", response)] == [14, 21, 28, 35, 42, 49],
        lambda kwargs: "Print only the multiples of 7 from 10 to 50.",
    ),
    Verifier(
        "custom:reverse_newline",
        _reverse_lines,
        lambda kwargs: "List all countries in reverse alphabetical order, one on each line.",
    ),
    Verifier(
        "custom:sentence_alphabet",
        lambda response, kwargs: (
            [next(iter(words(sentence)), " ")[0].lower() for sentence in sentences(response)]
            == [chr(ord("a") + n) for n in range(26)]
        ),
        lambda kwargs: "Write 26 sentences whose first letters go through the alphabet in order.",
    ),
)
