"""What a script sees of an error or a warning: the frames of its own code, and the line that called."""

from __future__ import annotations

import asyncio
import linecache
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import flowevolve as fe
from flowevolve.tasks.judging import Metric
from flowevolve.tasks.rows import GivenRow
from tests.support.length_rows import ROWS, length


def test_an_error_shows_the_frames_of_the_script_and_of_its_functions_only() -> None:
    broken: Metric = lambda row, output: 1 / 0  # noqa: E731
    with pytest.raises(fe.TaskFailedError) as caught:
        fe.optimize(
            prompt="p", train=ROWS, metric=broken, llm="simulated", budget=fe.Budget(proposals=4), clock="virtual"
        )
    assert [frame.name for frame in traceback.extract_tb(caught.tb)][1:] == ["optimize"]
    cause = caught.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)] == ["<lambda>"]


def unread(row: GivenRow, output: str) -> float:
    try:
        return {"a": 1.0}[output]
    except KeyError as error:
        raise ValueError("no such output") from error


def test_of_an_error_with_a_cause_in_the_functions_of_a_script_both_are_shown() -> None:
    with pytest.raises(fe.TaskFailedError) as caught:
        fe.optimize(
            prompt="p", train=ROWS, metric=unread, llm="simulated", budget=fe.Budget(proposals=4), clock="virtual"
        )
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert isinstance(cause.__cause__, KeyError)
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)] == ["unread"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"llm": fe.LLM("m", base_url="http://127.0.0.1:9/v1")},
        {"llm": fe.LLM("m", base_url="http://127.0.0.1:9/v1", transport="aiohttp")},
        {"llm": "simulated", "clock": "virtual", "out": "/dev/null/run"},
    ],
)
def test_an_error_that_no_code_of_the_user_has_caused_is_told_by_its_message_alone(
    arguments: Mapping[str, Any],
) -> None:
    with pytest.raises(fe.FlowevolveError) as caught:
        fe.optimize(prompt="p", train=ROWS, metric=length, budget=fe.Budget(proposals=4), **arguments)
    told = "".join(traceback.format_exception(caught.value))
    assert told.count("Traceback") == 1
    assert [frame.name for frame in traceback.extract_tb(caught.tb)][1:] == ["optimize"]


class UnlikeError(Exception):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not to be compared")

    __hash__ = Exception.__hash__


def test_errors_that_can_not_be_compared_may_have_caused_one_another() -> None:
    def metric(row: GivenRow, output: str) -> float:
        try:
            raise UnlikeError("first")
        except UnlikeError as error:
            raise UnlikeError("second") from error

    with pytest.raises(fe.TaskFailedError, match="UnlikeError: second"):
        fe.optimize(
            prompt="p", train=ROWS, metric=metric, llm="simulated", budget=fe.Budget(proposals=1), clock="virtual"
        )


def test_a_metric_that_fails_ends_the_run_at_once_with_the_row() -> None:
    broken: Metric = lambda row, output: 1 / 0  # noqa: E731
    with pytest.raises(fe.TaskFailedError, match=r"metric: (val|train) row"):
        fe.optimize(
            prompt="p", train=ROWS, metric=broken, llm="simulated", budget=fe.Budget(proposals=1), clock="virtual"
        )


def test_a_metric_that_always_fails_is_not_counted_to_the_end_of_the_budget() -> None:
    with (
        pytest.warns(UserWarning, match=r"metric: train row \d+: ZeroDivisionError"),
        pytest.raises(fe.TaskFailedError, match="failed on each of the first 10 rows"),
    ):
        fe.optimize(
            prompt="p",
            train=ROWS,
            metric=lambda row, output: 1 / 0,
            on_error="count",
            llm="simulated",
            budget=fe.Budget(proposals=30),
            clock="virtual",
        )


def fails_on_test_rows(row: GivenRow, output: str) -> float:
    return 1 / 0 if row["question"] == "for the test" else len(output) % 7 / 7


def test_a_test_row_that_fails_leaves_the_result_of_a_run_that_can_not_be_gone_on_with(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "prompt": "p",
        "train": ROWS,
        "test": [{"question": "for the test", "answer": "x"}],
        "metric": fails_on_test_rows,
        "llm": "simulated",
        "clock": "virtual",
        "budget": fe.Budget(proposals=2),
    }
    with pytest.warns(UserWarning, match="no held_out scores, because the test failed: metric: test row 0") as caught:
        result = fe.optimize(**given)
    assert [each.filename for each in caught] == [__file__]
    assert result.best is not None
    assert result.held_out is None
    with pytest.raises(fe.TaskFailedError, match="metric: test row 0"):  # and can be mended, and gone on with
        fe.optimize(**given, out=tmp_path / "run")


def test_warnings_name_the_line_that_calls_optimize() -> None:
    """Of rows, of a metric that fails and of the test: it is where something can be changed."""
    with pytest.warns(UserWarning, match="^(column|metric)") as caught:
        fe.optimize(
            prompt="p",
            train=[*ROWS, {"question": "blank", "answer": ""}],
            test=[{"question": "for the test", "answer": "x"}],
            metric=lambda row, output: 1 / 0 if row["question"] in ("blank", "for the test") else len(output) % 7 / 7,
            input="{question}",
            on_error="count",
            llm="simulated",
            clock="virtual",
            budget=fe.Budget(proposals=2),
        )
    assert {each.filename for each in caught} == {__file__}
    assert {str(each.message).partition(" ")[0] for each in caught} == {"column", "metric:"}


def test_warnings_name_the_line_that_awaits_a_run() -> None:
    async def script() -> None:
        await fe.optimize_async(
            prompt="p",
            train=[*ROWS, {"question": "blank", "answer": ""}],
            metric=lambda row, output: len(output) % 7 / 7,
            input="{question}",
            llm="simulated",
            budget=fe.Budget(proposals=1),
            progress=False,
        )

    with pytest.warns(UserWarning, match="column 'answer' is blank") as caught:
        asyncio.run(script())
    assert [(each.filename, linecache.getline(each.filename, each.lineno).strip()) for each in caught] == [
        (__file__, "await fe.optimize_async(")
    ]
