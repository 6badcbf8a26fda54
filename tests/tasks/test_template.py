"""What the model is shown of a row: columns in braces, whatever their names are, and braces that stand for themselves."""

from __future__ import annotations

import re

import pytest

from flowevolve._util.errors import InputError
from flowevolve.tasks.template import Template

ROW = {"ticket text": "It crashes.", "note": "{note}", "Prix (€)": 3, "{odd}": "x"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{ticket text}", "It crashes."),
        ("Note: {note}\n{ticket text}", "Note: {note}\nIt crashes."),
        ("{Prix (€)} €", "3 €"),
        ('{{"text": "{ticket text}"}}', '{"text": "It crashes."}'),
        ("{{{ticket text}}}", "{It crashes.}"),
        ('{{"a": {{"b": {Prix (€)}}}}}', '{"a": {"b": 3}}'),
    ],
)
def test_columns_in_braces_are_filled_in_and_doubled_braces_are_braces(text: str, shown: str) -> None:
    assert Template(text, list(ROW)).filled(ROW) == shown


def test_the_columns_that_it_names_are_known() -> None:
    assert Template("{note} {{x}} {ticket text} {note}", list(ROW)).names == ("note", "ticket text")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{ticket}", "input: there is no column 'ticket'; the columns are ticket text, note, Prix (€), {odd}"),
        ("{ note }", "input: there is no column ' note '; the columns are"),
        (
            '{"text": "{note}"}',
            'input: the brace at \'{"text": "{note}"}\' is around no column; braces that the model is',
        ),
        ('{"ticket": "{ticket text}"}', 'input: the brace at \'{"ticket": "{ticket …\' is around no column'),
        ("{note} :}", "input: the brace at '}' is around no column; braces that the model is to see are doubled"),
        ("{}{note}", "input: the brace at '{}{note}' is around no column"),
        ("the text", "input: 'the text' names no column in braces; the columns are"),
        ("{{note}}", "input: '{{note}}' names no column in braces, as doubled braces are shown as they are; the col"),
    ],
)
def test_braces_that_are_around_no_column_are_told(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=re.escape(problem)):
        Template(text, list(ROW))
