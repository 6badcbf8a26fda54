"""A program of a user's own that asks the model: what it may do, what it is told, and whose mistake it is if a call fails."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import cast

import pytest

import flowevolve as fe
from flowevolve._util.waits import waited_for
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message, RejectedError
from flowevolve.core.task import Example
from flowevolve.tasks.metric import Ask, MetricTask, Program
from flowevolve.tasks.rows import GivenRow
from tests.support.metric_tasks import ROWS, Echo, exact, rolled


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
        "program: train row 1: ask was given no text, or None; it takes a component and a text, as in "
        'await ask("prompt", row["question"])'
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


async def answers_alone(row: GivenRow, ask: Ask) -> str:
    return await ask("answer", str(row["question"]))


async def extracts_from_one_row(row: GivenRow, ask: Ask) -> str:
    return await ask("extract" if row == ROWS[-1] else "answer", str(row["question"]))


@pytest.mark.parametrize(("program", "warnings_told"), [(answers_alone, 1), (extracts_from_one_row, 0)])
def test_components_that_a_program_never_asks_for_are_named_once(
    program: Program[GivenRow], warnings_told: int
) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fe.optimize(
            prompt={"extract": "Extract.", "answer": "Answer."},
            train=ROWS,
            val=ROWS[-2:],
            metric=lambda row, output: len(output) % 7 / 7,
            program=program,
            llm="simulated",
            clock="virtual",
            budget=fe.Budget(proposals=4),
        )
    said = [str(each.message) for each in told if "never asked" in str(each.message)]
    assert len(said) == warnings_told
    assert all(each.startswith("the program never asked for 'extract' while the first prompt was") for each in said)


async def hinted(row: GivenRow, ask: Ask) -> str:
    """Fails on rows that have no hint."""
    return await ask("prompt", f"{row['question']} {row['hint']}")


def test_a_program_that_fails_names_the_row_and_ends_the_run_or_is_counted() -> None:
    with pytest.raises(
        fe.TaskFailedError,
        match=r"program: train row 1: KeyError: 'hint' \(.*test_programs_that_ask\.py:\d+\); the row is {",
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
    with pytest.raises(
        fe.TaskFailedError, match=r"program: train row 1: KeyError: 'hint' \(.*test_programs_that_ask\.py:\d+\)"
    ):
        rolled(MetricTask("p", ROWS, exact, program=in_a_group(hinted)))
