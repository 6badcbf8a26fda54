"""Rows of a user's own: in which forms they are taken, what of them the model is shown, and what is refused."""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import flowevolve as fe
from flowevolve.tasks.metric import MetricTask
from flowevolve.tasks.rows import GivenRow
from tests.support.metric_tasks import MORE, ROWS, Echo, exact, rolled


def test_the_model_is_shown_the_prompt_and_the_one_column_that_is_no_answer() -> None:
    task = MetricTask("Answer briefly.", ROWS, exact)
    rollout, llm = rolled(task)
    asked = str(task.data.train[0].data["question"])
    assert llm.asked == [("Answer briefly.", asked)]
    assert rollout.calls[0].component == "prompt"
    assert rollout.score.value == 0
    assert "answer: " in rollout.score.feedback
    assert "question" not in rollout.score.feedback
    assert len(task.data.train) == len(task.data.val) == 4
    assert {example.id for example in task.data.train} == {f"train row {n}" for n in range(4)}


def test_a_column_whose_name_is_no_single_word_is_shown() -> None:
    rows = [{"ticket text": f"It crashes {n}.", "note": "a", "label": "bug"} for n in range(4)]
    rollout, llm = rolled(MetricTask("p", rows, lambda row, output: 0.5, input="Note: {note}\n{ticket text}"))
    assert llm.asked[0][1].startswith("Note: a\nIt crashes ")
    assert rollout.score.feedback == "Score: 0.5 of 1.\nlabel: bug"
    alone = [{"ticket text": row["ticket text"], "label": "bug"} for row in rows]
    assert rolled(MetricTask("p", alone, lambda row, output: 0.5))[1].asked[0][1].startswith("It crashes ")


def test_the_split_is_the_same_each_time_and_another_for_another_seed() -> None:
    first, again, other = (MetricTask("x", MORE, exact, seed=seed).data for seed in (0, 0, 1))
    assert first.val == again.val != other.val


@pytest.mark.parametrize("form", ["frame", "csv", "jsonl", "parquet", "tuples of mappings"])
def test_rows_are_taken_as_people_have_them(form: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS)
    path = tmp_path / f"rows.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    elif form == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif form == "parquet":
        parquet.write_table(pa.Table.from_pylist(ROWS), path)
    train = {"frame": frame, "tuples of mappings": tuple(ROWS)}.get(form, str(path))
    task = MetricTask("x", train, exact, val=MORE[8:])
    assert [str(example.data["answer"]) for example in task.data.train] == [str(row["answer"]) for row in ROWS]


def test_prompts_without_a_component_are_refused_by_the_arguments_name() -> None:
    with pytest.raises(fe.InputError, match=r"^prompt: an artifact needs at least one component"):
        MetricTask({}, ROWS, exact)


async def no_program(row: GivenRow) -> str:
    return ""


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            {"train": ["a", "b"]},
            'train: row 0 is of type str, but a row has columns; give mappings, such as {"question"',
        ),
        (
            {"train": pd.Series(["a", "b"])},
            'train: row 0 is of type str, but a row has columns; give mappings, such as {"question"',
        ),
        ({"train": []}, "train holds no rows; give at least one"),
        (
            {"train": 7},
            "train is of type int; give a list of mappings, a data frame, a data set or the path of a file",
        ),
        ({"train": {"question": "x"}}, "train is a single mapping; give a list of rows"),
        ({"train": [{1: "x"}] * 2}, "train: row 0 has a column named 1, but the names of columns have to be texts"),
        ({"train": [{}]}, "train: row 0 has no columns"),
        ({"train": ROWS[:1]}, "train has only one row; give at least two, or give val= as well"),
        ({"train": "nowhere.csv"}, f"train: nowhere.csv: no such data file in {Path.cwd()}"),
        ({"train": "nowhere.parquet"}, f"train: nowhere.parquet: no such data file in {Path.cwd()}"),
        ({"train": "rows.docx"}, "train: rows.docx: unknown kind of file"),
        (
            {"train": [{"q": object()}] * 2, "input": "{q}"},
            "train row 0, column 'q' is of type object; give texts, numbers",
        ),
        ({"train": [{"a": "1", "b": "2"}] * 2}, 'input: say what the model is shown of a row, such as input="{a}"'),
        ({"input": "{questoin}"}, "input: there is no column 'questoin'; the columns are question, answer"),
        ({"input": "the question"}, "input: 'the question' names no column in braces"),
        (
            {"input": '{"a": "{question}"}'},
            'input: the brace at \'{"a": "{question}"}\' is around no column; braces that',
        ),
        ({"input": 3}, "input is 3 (int); give a text with columns in braces"),
        ({"val": [{"answer": 1}]}, "val row 0 has nothing in column 'question'"),
        (
            {"val": [{"question": " ", "answer": 1}]},
            "val row 0: the model would be shown nothing, as all columns that input= names are empty; the row is {'answer': 1",
        ),
        ({"prompt": 5}, "prompt is 5 (int); give a text, the Path of a file, or texts by the names of components"),
        ({"prompt": Path("nowhere.md")}, "prompt: nowhere.md can't be read: No such file or directory"),
        (
            {"prompt": __file__},
            f"prompt: {__file__!r} is the name of a file here, but would be sent as the prompt itself; give",
        ),
        ({"prompt": {"a": "x", "b": "y"}}, "prompt has 2 components, but without a program there is only one call"),
        ({"metric": "exact"}, "metric is 'exact' (str); give a function of a row and an output"),
        ({"metric": Echo}, "metric is a class; give a function"),
        ({"metric": lambda output: True}, "metric takes (output), but is called with a row and an output"),
        ({"program": exact}, "program is exact, which is not async; give an async function"),
        ({"program": no_program}, "program takes (row: 'GivenRow')"),
        ({"on_error": "ignore"}, "on_error is 'ignore'; give 'stop' or 'count'"),
    ],
)
def test_misuse_is_told_in_a_line(arguments: Mapping[str, object], problem: str) -> None:
    given: dict[str, object] = {"prompt": "p", "train": ROWS, "metric": exact, **arguments}
    with pytest.raises(fe.InputError) as raised:
        MetricTask(**given)  # type: ignore[arg-type]  # wrong on purpose
    assert str(raised.value).startswith(problem)
    assert "\n" not in str(raised.value)


def test_rows_are_named_by_the_place_where_the_user_has_them() -> None:
    rows: list[GivenRow] = [*ROWS[:5], {"answer": "x"}]
    with pytest.raises(fe.InputError, match=r"^train row 5 has nothing in column 'question'"):
        MetricTask("p", rows, exact, input="{question}")
    odd: list[GivenRow] = [*ROWS[:5], {"question": Echo(), "answer": 1}]
    with pytest.raises(fe.InputError, match=r"^train row 5, column 'question' is of type Echo"):
        MetricTask("p", odd, exact)
    task = MetricTask("p", ROWS, lambda row, output: 2)
    for example in task.data:
        with pytest.raises(fe.InputError) as raised:
            asyncio.run(task.rollout(task.seed(), example, Echo()))
        number = ROWS.index(dict(example.data))
        assert str(raised.value).startswith(f"metric: train row {number}: it returned 2")
    assert [example.id for example in task.data.val] == [f"val row {number}" for number in range(4)]


def test_a_row_without_an_answer_is_named() -> None:
    rows: list[GivenRow] = [
        {"question": "a", "label": "x"},
        {"question": "b", "label": " "},
        {"question": "c", "label": 0},
    ]
    with pytest.warns(UserWarning, match=re.escape("column 'label' is blank in 1 of 3 rows")):
        MetricTask("p", rows, exact)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some: list[GivenRow] = [{"question": "a"}, {"question": "b", "label": None}]
        MetricTask("p", some, exact)
