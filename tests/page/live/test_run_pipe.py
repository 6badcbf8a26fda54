"""The page's end of the pipe to its run: acts go out one a line, and each gets its own answer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from threading import Timer
from typing import BinaryIO

import anyio
import pytest

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve._util.tasks import beside
from flowevolve.core.acts import Act, Comment, Pause, Veto
from flowevolve.page.live import run_pipe
from flowevolve.page.live.run_pipe import RunPipe

pytestmark = pytest.mark.asyncio


class Run:
    """The run's end of the pipe, and the page's."""

    def __init__(self, acts: BinaryIO, answers: BinaryIO, pipe: RunPipe) -> None:
        self.acts = acts
        self.answers = answers
        self.pipe = pipe

    async def next_act(self) -> tuple[int, object]:
        said = json.loads(await in_thread(self.acts.readline))
        return said["id"], said["act"]

    def answer(self, number: int, refused: str | None) -> None:
        self.answers.write(json.dumps({"id": number, "refused": refused}).encode() + b"\n")
        self.answers.flush()


@pytest.fixture
def run() -> Iterator[Run]:
    (acts, acts_in), (answers, answers_in) = os.pipe(), os.pipe()
    with (
        os.fdopen(acts, "rb") as acts_out,
        os.fdopen(acts_in, "wb") as acts_written,
        os.fdopen(answers, "rb") as answers_out,
        os.fdopen(answers_in, "wb") as answers_written,
    ):
        yield Run(acts_out, answers_written, RunPipe(answers_out, acts_written))


async def test_each_act_gets_its_own_answer_in_whatever_order_they_come(run: Run) -> None:
    pipe, said = run.pipe, dict[Act, str | None]()

    async def ask(act: Act) -> None:
        said[act] = await pipe.act(act, "ada")

    async with beside() as listening:
        listening.start_soon(pipe.listen)
        async with anyio.create_task_group() as asking:
            asking.start_soon(ask, Pause())
            asking.start_soon(ask, Veto("c9"))
            first, second = await run.next_act(), await run.next_act()
            assert (first[1], second[1]) == ({"act": "pause"}, {"act": "veto", "candidate": "c9"})
            run.answer(7, "nobody has asked that")
            run.answer(second[0], "there is no candidate c9")
            run.answer(first[0], None)
        run.answers.close()  # so that the thread that reads comes back
    assert said == {Pause(): None, Veto("c9"): "there is no candidate c9"}


async def test_listening_ends_with_the_run_and_nothing_can_be_asked_any_more(run: Run) -> None:
    run.answers.close()
    run.acts.close()
    await run.pipe.listen()
    with pytest.raises(InputError, match=r"^The run has ended\.$"):
        await run.pipe.act(Pause(), "ada")


async def test_a_run_that_does_not_answer_is_waited_for_so_long_and_asked_so_much(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pipe, "ANSWER_SECONDS", 0.0)
    with pytest.raises(InputError, match="has not answered yet"):
        await run.pipe.act(Pause(), "ada")
    monkeypatch.setattr(run_pipe, "MOST_UNANSWERED", 0)
    with pytest.raises(InputError, match="has not answered 0 acts"):
        await run.pipe.act(Pause(), "ada")


async def test_a_run_that_reads_nothing_holds_up_nobody_and_is_asked_again_when_it_does(run: Run) -> None:
    long = Comment("x" * 1_000_000, candidate="c1")  # more than a pipe holds

    async def ask_until_taken() -> None:
        while True:
            with suppress(InputError):
                assert await run.pipe.act(Pause(), "ada") is None
                return

    last_resort = Timer(60, run.acts.close)  # so that this fails and does not hang
    last_resort.start()
    async with anyio.create_task_group() as asking:
        asking.start_soon(run.pipe.act, long, "ada")
        begun = await in_thread(run.acts.read, 1)  # so it is being written
        asking.cancel_scope.cancel()
    with pytest.raises(InputError, match="The run takes in nothing at present"):
        await run.pipe.act(Pause(), "ada")
    assert json.loads(begun + await in_thread(run.acts.readline))["act"] == long.to_json()
    async with beside() as listening:
        listening.start_soon(run.pipe.listen)
        async with anyio.create_task_group() as asking:
            asking.start_soon(ask_until_taken)
            number, act = await run.next_act()
            assert act == {"act": "pause"}
            run.answer(number, None)
        run.answers.close()
    last_resort.cancel()
