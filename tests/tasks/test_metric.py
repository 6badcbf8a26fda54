"""What a metric may return, and what becomes of one that fails or holds up the run."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import sys
import warnings
from collections.abc import Sequence
from typing import cast

import anyio
import numpy as np
import pytest
from anyio.lowlevel import checkpoint

import flowevolve as fe
from flowevolve._util.waits import waited_for
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.tasks import blocking
from flowevolve.tasks.judging import Metric, OnError
from flowevolve.tasks.metric import Ask, MetricTask
from flowevolve.tasks.rows import GivenRow
from tests.support.metric_tasks import MORE, ROWS, Echo, awaits_what_it_cancelled, exact, fails, rolled


def test_values_of_other_libraries_become_plain_data_and_the_metric_gets_them_as_they_are() -> None:
    seen: list[object] = []
    row = {"q": np.str_("x"), "n": np.int64(3), "list": np.array([1, 2]), "nothing": float("nan")}

    def metric(row: GivenRow, output: str) -> float:
        seen.append(row["n"])
        return 0.5

    task = MetricTask("p", [row, {**row, "n": np.int64(4)}], metric, input="{q} {n}")
    rollout, llm = rolled(task)
    assert llm.asked[0][1] == "x 3"
    assert task.data.train[0].data["list"] == [1, 2]
    assert task.data.train[0].data["nothing"] is None
    assert isinstance(seen[0], np.int64)
    assert rollout.score.value == 0.5


@pytest.mark.parametrize(
    ("returned", "value", "feedback"),
    [
        (True, 1.0, "Score: 1 of 1."),
        (0.25, 0.25, "Score: 0.25 of 1."),
        (np.float64(0.5), 0.5, "Score: 0.5 of 1."),
        ((0.5, "Half of it."), 0.5, "Half of it."),
        (fe.Score(0.75, "Own words.", passed=False), 0.75, "Own words."),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_a_metric_may_return(returned: object, value: float, feedback: str, *, asynchronous: bool) -> None:
    async def later(row: GivenRow, output: str) -> object:
        return returned

    task = MetricTask("p", ROWS, later if asynchronous else lambda row, output: returned)  # type: ignore[arg-type, return-value]
    score = rolled(task)[0].score
    assert score.value == value
    assert score.feedback.startswith(feedback)


async def cancels(row: GivenRow, output: str) -> float:
    await awaits_what_it_cancelled()
    return 1.0


def cancels_in_a_thread(row: GivenRow, output: str) -> float:
    raise asyncio.CancelledError


async def program_that_cancels(row: GivenRow, ask: Ask) -> str:
    await awaits_what_it_cancelled()
    return ""


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("metric", MetricTask("p", ROWS, cancels)),
        ("metric", MetricTask("p", ROWS, cancels_in_a_thread)),
        ("program", MetricTask("p", ROWS, exact, program=program_that_cancels)),
    ],
)
def test_a_cancellation_that_nobody_asked_for_is_an_error_like_any_other(name: str, task: MetricTask) -> None:
    said = rf"^{name}: train row \d: RuntimeError: it raised CancelledError, but nobody .* \(.*metric.*\.py:\d+\)"
    with pytest.raises(fe.TaskFailedError, match=said):
        rolled(task)


def test_a_metric_that_ends_the_process_is_named_with_the_row() -> None:
    task = MetricTask("p", ROWS, lambda row, output: sys.exit(3))
    with pytest.raises(
        fe.TaskFailedError, match=r"^metric: train row \d: it raised SystemExit in a worker thread; the row"
    ):
        rolled(task)


def test_an_async_metric_that_works_for_long_without_awaiting_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(blocking, "monotonic", lambda: now)

    def work(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def blocks(row: GivenRow, output: str) -> float:
        work(3.5)
        return 0.5

    async def blocks_later(row: GivenRow, output: str) -> float:
        await checkpoint()
        work(2.0)
        await checkpoint()
        work(1.5)
        return 0.5

    async def waits(row: GivenRow, output: str) -> float:
        asyncio.get_running_loop().call_soon(work, 20.0)  # others go on meanwhile
        await checkpoint()
        for _ in range(1000):
            work(0.01)
            await checkpoint()
        return 0.5

    class Blocks:
        async def __call__(self, row: GivenRow, output: str) -> float:
            return await blocks(row, output)

    forms: Sequence[Metric[GivenRow]] = (blocks, Blocks(), lambda row, output: blocks(row, output), blocks_later)
    for metric in forms:
        task = MetricTask("x", ROWS, metric)
        with pytest.warns(
            UserWarning, match=r"^metric is async and has held up the whole run for 3\.5 s.*make it a plain d"
        ):
            rolled(task)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rolled(task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rolled(MetricTask("x", ROWS, waits))
        rolled(MetricTask("x", ROWS, exact))


def test_an_async_metric_gets_the_replies_the_errors_and_the_cancellation_of_what_it_awaits() -> None:
    async def replies(row: GivenRow, output: str) -> float:
        future = asyncio.get_running_loop().create_future()
        future.get_loop().call_soon(future.set_result, 0.25)
        return cast(float, await future)

    async def fails(row: GivenRow, output: str) -> float:
        future = asyncio.get_running_loop().create_future()
        future.get_loop().call_soon(future.set_exception, ValueError("no"))
        with pytest.raises(ValueError, match="no"):
            await future
        return 0.5

    async def gives_up(row: GivenRow, output: str) -> float:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await checkpoint()
        return 0.75 * scope.cancelled_caught

    metrics: Sequence[Metric[GivenRow]] = (replies, fails, gives_up)
    assert [rolled(MetricTask("x", ROWS, metric))[0].score.value for metric in metrics] == [0.25, 0.5, 0.75]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_row_whose_metric_is_waited_for_is_known(*, asynchronous: bool) -> None:
    seen: list[str] = []

    def metric(row: GivenRow, output: str) -> float:
        seen.append(waited_for())
        return 0.5

    async def awaited(row: GivenRow, output: str) -> float:
        return metric(row, output)

    async def program(row: GivenRow, ask: Ask) -> str:
        seen.append(waited_for())
        return ""

    task = MetricTask("x", ROWS, awaited if asynchronous else metric, val=MORE[8:12], program=program)
    rolled(task, 1)
    assert [re.sub(r"\d+", "?", each) for each in seen] == [
        "program, train row ?, for ? s",
        "metric, train row ?, for ? s",
    ]
    assert waited_for() == ""


def test_a_metric_whose_score_passed_in_words_names_the_row() -> None:
    task = MetricTask("p", ROWS, lambda row, output: fe.Score(0.5, "Half.", passed="no"))  # type: ignore[arg-type]
    with pytest.raises(fe.FlowevolveError, match=r"train row 1: TypeError: Score: passed is 'no'; give True or False"):
        rolled(task)


def test_a_metric_that_fails_names_the_row_and_ends_the_run_or_is_counted() -> None:
    task = MetricTask("p", ROWS, fails)
    with pytest.raises(
        fe.TaskFailedError, match=r"metric: train row 1: ZeroDivisionError: .*metric_tasks\.py:\d+.*the row is {"
    ):
        rolled(task)
    counting = MetricTask("p", ROWS, fails, on_error="count")
    with pytest.warns(
        UserWarning, match=r"metric: train row 1: ZeroDivisionError: .*the row is {.*others on which it fa"
    ):
        rollout, _ = rolled(counting)
    assert rollout.score.value == 0
    assert "train row 1: ZeroDivisionError" in rollout.score.feedback
    rolled(counting, 1)  # told once


def test_a_metric_that_cannot_read_the_output_is_told_its_own_line_and_what_the_output_was() -> None:
    def metric(row: GivenRow, output: str) -> bool:
        return bool(json.loads(output))  # the error comes out of the library's file

    with pytest.raises(fe.TaskFailedError) as raised:
        rolled(MetricTask("p", ROWS, metric))
    line = metric.__code__.co_firstlineno + 1
    assert f"({__file__}:{line})" in str(raised.value)
    assert "; the output is 'What is 1 + 1?'; with" in str(raised.value)


@pytest.mark.filterwarnings("ignore:metric. train row")
@pytest.mark.parametrize("working", [0, 1])
def test_a_metric_that_fails_on_all_of_the_first_rows_is_broken_also_where_failures_are_counted(working: int) -> None:
    called: list[GivenRow] = []

    def metric(row: GivenRow, output: str) -> float:
        called.append(row)
        return 1 / (len(called) <= working)

    task = MetricTask("p", ROWS, metric, on_error="count")
    for _ in range(9 + working):
        rolled(task)
    if working:
        assert rolled(task)[0].score.value == 0
        return
    with pytest.raises(
        fe.TaskFailedError, match=r"metric: train row 1: Zero.*the metric has failed on each of the first 10 rows"
    ):
        rolled(task)


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (
            None,
            "it returned None (NoneType), but has to return a bool, a number from 0 to 1, or a tuple of such a number",
        ),
        (float("nan"), "it returned nan, but has to return a number from 0 to 1"),
        ("good", "it returned 'good' (str), but has to return a bool"),
        (np.array([0.5, 0.1]), "it returned array([0.5, 0.1]) (ndarray), but has to return a bool"),
        ((0.5, 1), "it returned (0.5, 1) (tuple), but has to return a bool"),
        (
            [0.5, "Half of it."],
            "it returned [0.5, 'Half of it.'] (list), but has to return a bool, a number from 0 to 1, or a tuple of",
        ),
        (fe.Score(1.0, cast("str", None), passed=True), "it returned a Score whose feedback is None (NoneType)"),
        (
            fe.Score(float("nan"), "", passed=False),
            "it returned a Score whose value is nan, but has to return a number from 0 to 1",
        ),
    ],
)
def test_what_a_metric_may_not_return(returned: object, problem: str) -> None:
    """It ends the run or is counted, like an error of the metric."""
    metric: Metric = lambda row, output: returned  # type: ignore[assignment, return-value]  # noqa: E731
    with pytest.raises(fe.TaskFailedError, match=re.escape(f"metric: train row 1: {problem}")) as raised:
        rolled(MetricTask("p", ROWS, metric))
    assert "; the row is {" in str(raised.value)  # the number alone says little of a row that was split off
    assert str(raised.value).endswith("; with on_error='count' such rows score 0 instead")
    with pytest.warns(UserWarning, match=re.escape(problem)):
        score = rolled(MetricTask("p", ROWS, metric, on_error="count"))[0].score
    assert score.value == 0
    assert problem in (score.failure or "")


@pytest.mark.parametrize("returned", [50, -0.5, float("inf"), 10**400])
@pytest.mark.parametrize("on_error", ["stop", "count"])
def test_a_metric_on_another_scale_ends_the_run_even_where_failures_are_counted(
    returned: float, on_error: OnError
) -> None:
    """Its best outputs would count as the worst."""
    with pytest.raises(fe.InputError, match=r"metric: train row 1: it returned .*, but scores have to be from 0 to 1"):
        rolled(MetricTask("p", ROWS, lambda row, output: returned, on_error=on_error))


@pytest.mark.parametrize("value", [1.5, -0.5, float("inf")])
@pytest.mark.parametrize("on_error", ["stop", "count"])
def test_a_score_on_another_scale_ends_the_run_like_a_plain_number(value: float, on_error: OnError) -> None:
    problem = rf"^metric: train row 1: it returned a Score whose value is {value}, but .* from 0 to 1; the row is {{"
    with pytest.raises(fe.InputError, match=problem):
        rolled(MetricTask("p", ROWS, lambda row, output: fe.Score(value, "", passed=False), on_error=on_error))


@pytest.mark.parametrize("value", [1 + 2e-16, -2e-16])
def test_a_number_that_rounding_put_out_of_its_range_is_taken(value: float) -> None:
    assert rolled(MetricTask("p", ROWS, lambda row, output: value))[0].score.value == value
    assert rolled(MetricTask("p", ROWS, lambda row, output: fe.Score(value, "", passed=True)))[0].score.value == value


@pytest.mark.parametrize("on_error", ["stop", "count"])
def test_a_further_metric_that_is_nan_ends_the_run_rather_than_cost_a_row_its_score(on_error: OnError) -> None:
    score = fe.Score(0.5, "", passed=False, metrics={"recall": float("nan")})
    problem = r"^metric: train row 1: it returned a Score whose metric 'recall' is nan; leave .* out .*; the row is {"
    with pytest.raises(fe.InputError, match=problem):
        rolled(MetricTask("p", ROWS, lambda row, output: score, on_error=on_error))


@pytest.mark.filterwarnings("ignore:metric. train row")
def test_a_metric_that_never_returns_a_score_is_broken() -> None:
    task = MetricTask("p", ROWS, lambda row, output: float("nan"), on_error="count")
    for _ in range(9):
        rolled(task)
    with pytest.raises(fe.TaskFailedError, match=r"nan.*the metric has failed on each of the first 10 rows"):
        rolled(task)


@pytest.mark.parametrize("returned", [None, "good", 50])
def test_a_metric_that_returns_no_score_costs_the_answer_to_one_row(returned: object) -> None:
    task, llm = MetricTask("p", ROWS, lambda row, output: returned), Echo()  # type: ignore[arg-type, return-value]

    async def all_of_them() -> list[object]:
        async with task:  # as a run holds it
            jobs = [task.rollout(task.seed(), example, llm) for example in task.data.val]
            return await asyncio.gather(*jobs, return_exceptions=True)

    assert all(isinstance(error, fe.FlowevolveError) for error in asyncio.run(all_of_them()))
    assert len(llm.asked) == 1


def test_a_run_waits_for_the_first_row_of_no_other_run_with_the_same_task() -> None:
    task = MetricTask("p", ROWS, exact)
    held, let_go = asyncio.Event(), asyncio.Event()

    async def silent(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        held.set()
        await let_go.wait()
        raise fe.BackendRefusedError("not your server")

    async def first() -> None:
        async with task:
            with pytest.raises(fe.BackendRefusedError):
                await task.rollout(task.seed(), task.data.val[0], silent)

    async def second() -> None:
        await held.wait()
        async with task:
            for example in task.data.val:
                await task.rollout(task.seed(), example, Echo())
        let_go.set()

    async def both() -> None:
        await asyncio.wait_for(asyncio.gather(first(), second()), 10)

    asyncio.run(both())


def test_a_task_can_be_pickled_after_a_run() -> None:
    task = MetricTask("p", ROWS, exact)

    async def held() -> None:
        async with task:
            await task.rollout(task.seed(), task.data.val[0], Echo())

    asyncio.run(held())
    assert pickle.loads(pickle.dumps(task)).data == task.data


@pytest.mark.filterwarnings("ignore:metric. train row")
def test_a_metric_is_not_broken_that_fails_on_the_outputs_of_other_prompts_after_a_resume() -> None:
    task = MetricTask("p", ROWS, lambda row, output: 1 / 0, on_error="count")
    for _ in range(12):
        made = asyncio.run(task.rollout(Artifact({"prompt": "q"}), task.data.train[0], Echo()))
        assert made.score.value == 0
