"""What is told in warnings about a prompt and its rows, and what is not."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping

import pytest

from flowevolve.tasks.metric import MetricTask
from flowevolve.tasks.rows import GivenRow

ROWS: list[GivenRow] = [{"when": f"on day {n}", "answer": str(n)} for n in range(8)]


def made(**arguments: object) -> list[str]:
    """The warnings about a task of these arguments."""
    given: dict[str, object] = {"prompt": "Name the day.", "train": ROWS, "metric": lambda row, output: 0.5}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        MetricTask(**{**given, **arguments})  # type: ignore[arg-type]
    assert {each.filename for each in told} <= {__file__}
    return [str(each.message) for each in told]


@pytest.mark.parametrize(
    ("arguments", "doubt"),
    [
        (
            {"val": [*ROWS[:2], {"when": "never", "answer": ""}], "test": None},
            r"some rows for validation \(2 of 3, such as val row 0 and train row .* put each row into one split only$",
        ),
        (
            {"train": ROWS[:1] * 4},
            r"some rows for validation \(2 of 2, .*; remove the duplicates from train, or give rows for validation as val=$",
        ),
        (
            {"test": ROWS[3:4]},
            r"some rows of test \(1 of 1, such as test row 0 and train row 3\) are also among those of train and val, so",
        ),
        ({"prompt": " "}, "prompt is blank, and some servers refuse an empty message"),
        (
            {"prompt": "Answer {when} with care."},
            r"prompt: \{when\} is sent unchanged, as nothing is filled into a prompt; the row follows the prompt, in the form that input=",
        ),
        (
            {"train": [*ROWS, {"when": "x", "answer": " "}]},
            r"column 'answer' is blank in 1 of 9 rows \(such as train row 8\)",
        ),
    ],
)
def test_what_is_odd_is_told(arguments: Mapping[str, object], doubt: str) -> None:
    assert any(re.search(doubt, each) for each in made(**arguments)), made(**arguments)


def test_nothing_is_told_of_what_is_as_usual() -> None:
    assert made(prompt='Answer as {"day": …} or {nothing}.', test=[{"when": "later", "answer": "9"}]) == []


def test_a_component_is_named_where_there_are_several() -> None:
    async def program(row: GivenRow, ask: object) -> str:
        return ""

    (doubt,) = made(prompt={"first": "{when}", "second": "x"}, program=program)
    assert re.match(r"prompt: first: {when} is sent", doubt)
