"""A server that answers from recorded calls: which calls it finds, which stand in, and when it answers."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve.core.model import ChatReply, ChatRequest, Message, RejectedError, UnreachableError, Usage
from flowevolve.sim.load_model import Span
from flowevolve.sim.replay import RecordedBackend, RecordedOutcome, RecordedServer, ReplayableCalls, ReplayedCall
from tests.support.depth import examples

T = TypeVar("T")


def messages(*texts: str) -> tuple[Message, ...]:
    return tuple(Message("system" if number < len(texts) - 1 else "user", text) for number, text in enumerate(texts))


def past(
    *texts: str,
    says: str | None = "yes",
    seed: int | None = 1,
    at: tuple[float, float] = (0.0, 1.0),
    role: str = "task",
    cached: bool = False,
) -> ReplayedCall:
    reply = None if says is None else ChatReply(says, Usage(10, 20), cached=cached)
    error = "ServerError: broken" if says is None else None
    return ReplayedCall(role, "m", messages(*texts), seed, reply, error, *at)


def ask(*texts: str, seed: int | None = 1, model: str = "m") -> ChatRequest:
    return ChatRequest(model, messages(*texts), seed=seed)


def said(answer: RecordedOutcome | None) -> str | None:
    return None if answer is None or answer.reply is None else answer.reply.text


def virtually(go: Callable[[], Awaitable[T]]) -> T:
    return clock.run(go, clock="virtual")


def test_a_request_is_found_by_model_and_messages_and_its_seed_comes_first() -> None:
    record = ReplayableCalls([past("a", says="one", seed=1), past("a", says="two", seed=2), past("b", says="three")])
    assert [said(record.find(ask("a", seed=seed))) for seed in (2, 1, 2, 1)] == ["two", "one", "two", "one"]
    assert said(record.find(ask("b", seed=9))) == "three"
    assert record.find(ask("c")) is None
    assert record.find(ask("a", model="other")) is None
    assert record.find(ask("", "a")) is None


def test_requests_made_several_times_get_their_replies_in_the_order_of_their_beginnings() -> None:
    record = ReplayableCalls(
        [past("a", says="second", seed=None, at=(2, 3)), past("a", says="first", seed=None, at=(1, 4))]
    )
    assert [said(record.find(ask("a", seed=None))) for _ in range(4)] == ["first", "second", "first", "second"]


def test_what_stands_in_is_as_like_the_request_as_the_record_allows() -> None:
    calls = [
        past("be kind", "question 1", says="1"),
        past("be kind", "question 2", says="2"),
        past("# Improve\nthis", says="improved", role="reflection"),
        past("# Judge\nthat", says="judged", role="reflection"),
        past("be kind", "question 3", says=None),
        past("be cached", "question 4", says="cached", cached=True),
    ]
    record = ReplayableCalls(calls)

    def stand_ins(role: str, *texts: str) -> set[str | None]:
        return {said(record.stand_in(role, ask(*texts, seed=seed))) for seed in range(50)}

    assert stand_ins("task", "be quick", "question 2") == {"2"}
    assert stand_ins("task", "be kind", "question 9") == {"1", "2"}
    assert stand_ins("reflection", "# Judge\nsomething else") == {"judged"}
    assert stand_ins("reflection", "# Invent\nsomething else") == {"improved", "judged"}
    assert stand_ins("other", "# Judge\nthat") == {"1", "2", "improved", "judged"}
    again = ReplayableCalls(calls)
    for seed in range(20):
        request = ask("", "", seed=seed)
        assert said(again.stand_in("task", request)) == said(record.stand_in("task", request))


def test_a_record_without_answers_can_not_stand_in() -> None:
    assert not ReplayableCalls([]).can_stand_in
    assert not ReplayableCalls([past("a", says=None), past("b", cached=True)]).can_stand_in
    assert ReplayableCalls([past("a")]).can_stand_in


def played(spans: Sequence[Span]) -> tuple[ReplayableCalls, list[float]]:
    """A record of these spans, and the times at which its calls end if they begin as they did."""
    record = ReplayableCalls(
        ReplayedCall(
            "task",
            "m",
            messages(str(number)),
            1,
            ChatReply("", Usage(1, span.tokens or 0)),
            None,
            span.started,
            span.finished,
        )
        for number, span in sorted(enumerate(spans), key=lambda each: each[1].finished)
    )
    ends = [0.0] * len(spans)

    async def go() -> None:
        server = RecordedServer(record, ["m"])

        async def one(number: int, span: Span) -> None:
            await anyio.sleep_until(span.started)
            await server.answer("task", ask(str(number)))
            ends[number] = anyio.current_time()

        async with anyio.create_task_group() as tasks:
            for number, span in enumerate(spans):
                tasks.start_soon(one, number, span)
        assert (server.matched, server.peak) == (len(spans), record.peak)

    virtually(go)
    return record, ends


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 50)), min_size=1, max_size=15))
def test_calls_begun_as_they_were_end_as_they_did(times: list[tuple[int, int]]) -> None:
    spans = [Span(start / 10, (start + length) / 10, 10) for start, length in times]
    assert played(spans)[1] == pytest.approx([span.finished for span in spans])


def slowed() -> list[Span]:
    """Calls of a server that each request in flight slows down by a tenth: some twenty at a time, then fewer, then more."""
    rng, spans = random.Random(3), list[Span]()
    for start in range(0, 500, 10):
        load = rng.randint(5, 20)
        lengths = [rng.randint(100, 200) for _ in range(load)]
        spans += [Span(start, start + tokens * 0.01 * (1 + 0.1 * load), tokens) for tokens in lengths]
    return spans


def test_so_they_do_where_load_slows_them() -> None:
    spans = slowed()
    record, ends = played(spans)
    assert record.slowing > 0.05
    assert ends == pytest.approx([span.finished for span in spans])


def test_alone_a_call_is_faster_where_load_slows_them() -> None:
    spans = slowed()
    record, _ = played(spans)

    async def go() -> float:
        await RecordedServer(record, ["m"]).answer("task", ask("0"))
        return anyio.current_time()

    assert virtually(go) < 0.8 * (spans[0].finished - spans[0].started)


def test_calls_that_end_at_once_end_in_the_order_of_the_record() -> None:
    record = ReplayableCalls([past("b", says="b", at=(0.1, 0.7)), past("a", says="a", at=(0.3, 0.7))])
    ended: list[str] = []

    async def go() -> None:
        server = RecordedServer(record, ["m"])

        async def one(text: str, begins: float) -> None:
            await anyio.sleep(begins)
            ended.append((await server.answer("task", ask(text))).text)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "a", 0.3)
            tasks.start_soon(one, "b", 0.1)

    virtually(go)
    assert ended == ["b", "a"]


def test_slots_are_given_first_come_first_served_and_waiting_is_told() -> None:
    record = ReplayableCalls([past(str(number), says=str(number), at=(0, 2)) for number in range(5)])
    ended: list[tuple[str, float]] = []

    async def go() -> tuple[int, int, int]:
        server = RecordedServer(record, ["m"], capacity=2)

        async def one(number: int) -> None:
            reply = await RecordedBackend(server, "task").chat(ask(str(number)), timeout=60)
            ended.append((reply.text, anyio.current_time()))

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(one, number)
            await anyio.sleep(1)
            load = await RecordedBackend(server, "task").load()
        assert load is not None
        return load.running, load.waiting, server.peak

    assert virtually(go) == (2, 3, 2)
    assert ended == [("0", 2), ("1", 2), ("2", 4), ("3", 4), ("4", 6)]


def test_what_failed_fails_again_and_a_timeout_is_an_answer_that_never_came() -> None:
    async def go() -> float:
        server = RecordedServer(ReplayableCalls([past("a", says=None, at=(0, 3)), past("b", at=(0, 9))]), ["m"])
        backend = RecordedBackend(server, "task")
        with pytest.raises(RejectedError, match="broken"):
            await backend.chat(ask("a"), timeout=60)
        with pytest.raises(UnreachableError, match="5 s"):
            await backend.chat(ask("b"), timeout=5)
        assert (server.matched, server.stand_ins, server.load.running) == (1, 0, 0)
        assert (await backend.chat(ask("c"), timeout=60)).text == "yes"
        assert (server.matched, server.stand_ins) == (1, 1)
        return anyio.current_time()

    assert virtually(go) == pytest.approx(3 + 5 + 9)
