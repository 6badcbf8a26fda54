"""A prompt, rows and a metric: what is taken, what is shown to the model, what a metric may return, and what is refused."""

from __future__ import annotations

import asyncio
import pickle
import re
import sys
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import anyio
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from anyio.lowlevel import checkpoint
from pyarrow import parquet

import flowevolve as fe
from flowevolve._util.waits import waited_for
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message, RejectedError
from flowevolve.core.task import Example, Rollout
from flowevolve.tasks import blocking
from flowevolve.tasks.judging import Metric, OnError
from flowevolve.tasks.metric import Ask, MetricTask, Program
from flowevolve.tasks.rows import GivenRow

MORE = [{"question": f"What is {n} + {n}?", "answer": 2 * n} for n in range(40)]
ROWS = MORE[:8]


def exact(row: GivenRow, output: str) -> bool:
    return output == str(row["answer"])


class Echo:
    """Answers with what it was asked last, and keeps all that it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    async def __call__(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        self.asked.append(tuple(message.content for message in messages))
        return messages[-1].content


def rolled(task: MetricTask, number: int = 0) -> tuple[Rollout, Echo]:
    llm = Echo()
    return asyncio.run(task.rollout(task.seed(), task.data.train[number], llm)), llm


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


def test_a_program_is_not_waited_for_while_one_of_its_calls_of_the_model_is_pending() -> None:
    seen: list[str] = []

    async def llm(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        seen.append(waited_for())
        if messages[-1].content == "fails":
            raise RejectedError("400")
        return "fine"

    async def program(row: GivenRow, ask: Ask) -> str:
        await asyncio.gather(ask("prompt", "a"), ask("prompt", "b"))
        with suppress(RejectedError):
            await ask("prompt", "fails")
        seen.append(waited_for())
        return ""

    task = MetricTask("x", ROWS, exact, program=program)
    asyncio.run(task.rollout(task.seed(), task.data.train[0], llm))
    assert seen[:3] == ["", "", ""]
    assert seen[3].startswith("program, train row ")


def test_prompts_without_a_component_are_refused_by_the_arguments_name() -> None:
    with pytest.raises(fe.InputError, match=r"^prompt: an artifact needs at least one component"):
        MetricTask({}, ROWS, exact)


def test_a_program_makes_several_calls_each_with_a_component() -> None:
    async def program(row: GivenRow, ask: Ask) -> str:
        draft = await ask("draft", str(row["question"]))
        return await ask("check", f"checked: {draft}")

    task = MetricTask({"draft": "Draft.", "check": "Check."}, ROWS, exact, program=program)
    rollout, llm = rolled(task)
    assert [asked[0] for asked in llm.asked] == ["Draft.", "Check."]
    assert [call.component for call in rollout.calls] == ["draft", "check"]
    assert rollout.output.startswith("checked: What is")
    assert task.seed() == Artifact({"draft": "Draft.", "check": "Check."})


def test_a_program_that_asks_without_a_component_is_told_how() -> None:
    async def program(row: GivenRow, ask: Ask) -> str:
        return await ask(str(row["question"]))  # type: ignore[call-arg]  # wrong on purpose

    with pytest.raises(fe.InputError) as raised:
        rolled(MetricTask("p", ROWS, exact, program=program))
    assert str(raised.value) == (
        'program: train row 1: ask takes a component and a text, as in await ask("prompt", row["question"])'
    )


async def returned_unawaited(row: GivenRow, ask: Ask) -> str:
    return cast("str", ask("prompt", "x"))


async def given_unawaited(row: GivenRow, ask: Ask) -> str:
    return await ask("prompt", cast("str", ask("prompt", "x")))


@pytest.mark.parametrize(("program", "said"), [(returned_unawaited, "it returned"), (given_unawaited, "ask was given")])
def test_a_program_that_forgets_to_await_is_told(program: Program[GivenRow], said: str) -> None:
    with pytest.raises(fe.InputError) as raised:
        rolled(MetricTask("p", ROWS, exact, program=program))
    assert str(raised.value) == (
        f"program: train row 1: {said} what ask returns without await; "
        'write await before each call, as in return await ask("component", text)'
    )


@pytest.mark.parametrize("asking_for", [None, 1])
def test_a_program_that_never_asks_is_told_but_may_know_some_answers_itself(asking_for: int | None) -> None:
    async def program(row: GivenRow, ask: Ask) -> str:
        return await ask("prompt", "x") if row["answer"] == asking_for else "known"

    rows = [{"question": f"q{n}", "answer": n} for n in range(40)]
    task = MetricTask("p", rows[20:], exact, val=rows[:20], program=program)

    def roll(example: Example) -> None:
        asyncio.run(task.rollout(task.seed(), example, Echo()))

    for example in [*task.data.train, *task.data.val[:9]]:
        roll(example)  # an interrupted run goes on with the rows of train, which are no evidence
    if asking_for is None:
        with pytest.raises(
            fe.InputError, match=r"^program: val row 9: it returned without asking for any component, as"
        ):
            roll(task.data.val[9])
    else:
        for example in task.data.val[9:]:
            roll(example)


def fails(row: GivenRow, output: str) -> bool:
    return bool(1 // (len(output) - len(output)))


def test_a_metric_whose_score_passed_in_words_names_the_row() -> None:
    task = MetricTask("p", ROWS, lambda row, output: fe.Score(0.5, "Half.", passed="no"))  # type: ignore[arg-type]
    with pytest.raises(fe.FlowevolveError, match=r"train row 1: TypeError: Score: passed is 'no'; give True or False"):
        rolled(task)


def test_a_metric_that_fails_names_the_row_and_ends_the_run_or_is_counted() -> None:
    task = MetricTask("p", ROWS, fails)
    with pytest.raises(
        fe.TaskFailedError, match=r"metric: train row 1: ZeroDivisionError: .*test_metric\.py:\d+.*the row is {"
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


async def hinted(row: GivenRow, ask: Ask) -> str:
    """Fails on rows that have no hint."""
    return await ask("prompt", f"{row['question']} {row['hint']}")


def test_a_program_that_fails_names_the_row_and_ends_the_run_or_is_counted() -> None:
    with pytest.raises(
        fe.TaskFailedError, match=r"program: train row 1: KeyError: 'hint' \(.*test_metric\.py:\d+\); the row is {"
    ):
        rolled(MetricTask("p", ROWS, exact, program=hinted))
    counting = MetricTask("p", ROWS, exact, program=hinted, on_error="count")
    with pytest.warns(
        UserWarning, match=r"program: train row 1: KeyError: .*the row is {.*others on which it fails score 0"
    ):
        rollout, _ = rolled(counting)
    assert (rollout.output, rollout.score.value) == ("", 0)
    assert "train row 1: KeyError" in rollout.score.feedback
    rolled(counting, 1)  # told once


@pytest.mark.filterwarnings("ignore:program. train row")
def test_a_program_that_fails_on_all_of_the_first_rows_is_broken_also_where_failures_are_counted() -> None:
    task = MetricTask("p", ROWS, exact, program=hinted, on_error="count")
    for _ in range(9):
        rolled(task)
    with pytest.raises(
        fe.TaskFailedError, match=r"program: train row 1: Key.*the program has failed on each of the first 10 rows"
    ):
        rolled(task)


async def one_call(row: GivenRow, ask: Ask) -> str:
    return await ask("prompt", "x")


async def calls_side_by_side(row: GivenRow, ask: Ask) -> str:
    async with asyncio.TaskGroup() as calls:
        asked = [calls.create_task(one_call({"text": text}, ask)) for text in "xy"]
    return " ".join(each.result() for each in asked)


async def in_words_of_its_own(row: GivenRow, ask: Ask) -> str:
    try:
        return await ask("prompt", "x")
    except Exception as error:
        raise ValueError("no answer") from error


@pytest.mark.parametrize("error", [RejectedError("too long"), fe.BackendRefusedError("not your server")])
@pytest.mark.parametrize("program", [one_call, calls_side_by_side, in_words_of_its_own])
def test_a_call_that_fails_is_no_mistake_of_the_program(program: Program[GivenRow], error: Exception) -> None:
    task = MetricTask("p", ROWS, exact, program=program)

    async def refused(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        raise error

    with pytest.raises(type(error), match=str(error)):
        asyncio.run(task.rollout(task.seed(), task.data.train[0], refused))


async def misspelt(row: GivenRow, ask: Ask) -> str:
    return await ask("promt", "x")


def in_a_group(
    part: Callable[[GivenRow, Ask], Coroutine[None, None, str]],
) -> Callable[[GivenRow, Ask], Awaitable[str]]:
    """A program that does its part in a task group."""

    async def program(row: GivenRow, ask: Ask) -> str:
        async with asyncio.TaskGroup() as calls:
            calls.create_task(part(row, ask))
        return ""

    return program


def test_a_program_that_asks_for_an_unknown_component_in_a_group_of_tasks_is_told() -> None:
    with pytest.raises(fe.InputError, match=r"^program: there is no component 'promt'; did you mean 'prompt'\?$"):
        rolled(MetricTask("p", ROWS, exact, program=in_a_group(misspelt)))


def test_a_mistake_in_a_group_of_tasks_is_named_itself() -> None:
    with pytest.raises(fe.TaskFailedError, match=r"program: train row 1: KeyError: 'hint' \(.*test_metric\.py:\d+\)"):
        rolled(MetricTask("p", ROWS, exact, program=in_a_group(hinted)))


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
        ({"prompt": Path("nowhere.md")}, "prompt: nowhere.md can't be read"),
        (
            {"prompt": __file__},
            f"prompt: {__file__!r} is the name of a file here, but would be sent as the prompt itself; give",
        ),
        ({"prompt": {"a": "x", "b": "y"}}, "prompt has 2 components, but without a program there is only one call"),
        ({"metric": "exact"}, "metric is 'exact' (str); give a function of a row and an output"),
        ({"metric": Echo}, "metric is a class; give a function"),
        ({"metric": lambda output: True}, "metric takes (output), but is called with a row and an output"),
        ({"program": exact}, "program is <function exact"),
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
