"""One limit, one rate limit and one response cache for several runs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from flowevolve._util import clock
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    Message,
    OverloadedError,
    RejectedError,
    ServerError,
    UnreachableError,
    Usage,
)
from flowevolve.gateway.gateway import MOST_WAITING, RETRY_SECONDS, Gateway
from flowevolve.llm.client.cache import open_cache
from flowevolve.llm.transports.sender import Sender

ONE, TWO = Sender("one"), Sender("two")


@dataclass
class Server:
    """Answers after a second or so many, or fails as its script says."""

    script: list[LLMError | None] = field(default_factory=list)
    seconds: float = 1.0
    asked: list[ChatRequest] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    busy: int = 0
    most: int = 0

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        self.asked.append(request)
        self.at.append(anyio.current_time())
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            await anyio.sleep(self.seconds)
        finally:
            self.busy -= 1
        failure = self.script.pop(0) if self.script else None
        if failure is not None:
            raise failure
        return ChatReply("fine", Usage(10, 5), headers={"x-ratelimit-remaining-requests": "7"})

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        return EmbedReply(tuple((1.0,) for _ in request.texts), Usage(3))

    async def models(self) -> tuple[str, ...]:
        return ("m",)

    async def aclose(self) -> None:
        pass


def ask(text: str, priority: int | None = None, seed: int | None = None) -> ChatRequest:
    return ChatRequest("m", (Message("user", text),), seed=seed, priority=priority)


def virtually(go: Callable[[], Coroutine[object, object, None]]) -> None:
    clock.run(go, clock="virtual")


def test_all_runs_together_have_one_limit() -> None:
    server = Server()

    async def go() -> None:
        gateway = Gateway(server, 3)
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                for sender in (ONE, TWO):
                    tasks.start_soon(lambda whose=sender, n=number: gateway.chat(whose, ask(str(n)), timeout=60))  # type: ignore[misc]
            await anyio.sleep(0.5)
            assert (gateway.stats().in_flight, gateway.stats().waiting) == (3, 17)
            assert sum(account.waiting for account in gateway.accounts()) == 17
        assert [(account.requests, account.usage) for account in gateway.accounts()] == [(10, Usage(100, 50))] * 2

    virtually(go)
    assert server.most == 3


def test_a_runs_own_requests_go_as_they_come_and_the_server_sees_no_priority() -> None:
    server = Server()

    async def go() -> None:
        gateway = Gateway(server, 1)
        async with anyio.create_task_group() as tasks:
            for text, priority in [("first", 9), ("second", 2000), ("third", 1000)]:
                tasks.start_soon(lambda t=text, p=priority: gateway.chat(ONE, ask(t, p), timeout=60))  # type: ignore[misc]
                await anyio.sleep(0.01)

    virtually(go)
    assert [request.messages[0].content for request in server.asked] == ["first", "second", "third"]
    assert {request.priority for request in server.asked} == {None}


def test_what_one_run_was_answered_answers_the_others(tmp_path: Path) -> None:
    server = Server()

    async def go() -> None:
        async with open_cache(tmp_path / "cache") as cache:
            gateway = Gateway(server, 8, cache=cache)
            replies: list[ChatReply] = []

            async def call(sender: Sender, request: ChatRequest) -> None:
                replies.append(await gateway.chat(sender, request, timeout=60))

            async with anyio.create_task_group() as tasks:  # at once, so that one waits for the other
                tasks.start_soon(call, ONE, ask("same", seed=1))
                tasks.start_soon(call, TWO, ask("same", seed=1))
                tasks.start_soon(call, TWO, ask("same", seed=2))
            await call(TWO, ask("same", seed=1, priority=3))
            for _ in range(2):
                await call(TWO, ask("same"))
            assert {reply.text for reply in replies} == {"fine"}

    clock.run(go, clock="real")  # the cache is read in a thread
    assert [request.seed for request in server.asked] == [1, 2, None, None]


def test_refusals_for_asking_too_fast_stay_here() -> None:
    refusal = OverloadedError("slow down", status=429, retry_after=20.0)
    server = Server([refusal, refusal, None])

    async def go() -> None:
        gateway = Gateway(server, 8)
        reply = await gateway.chat(ONE, ask("a"), timeout=60)
        assert reply.text == "fine"

    virtually(go)
    assert server.at[1] - server.at[0] >= 20


def test_the_wait_for_a_turn_uses_up_no_patience() -> None:
    server = Server([None, OverloadedError("slow down", status=429), None], seconds=400.0)

    async def go() -> None:
        gateway = Gateway(server, 1)
        async with anyio.create_task_group() as tasks:
            for sender in (ONE, TWO):
                tasks.start_soon(lambda whose=sender: gateway.chat(whose, ask("a"), timeout=600))  # type: ignore[misc]

    virtually(go)
    assert len(server.asked) == 3


def test_a_server_that_refuses_for_ever_is_given_up() -> None:
    server = Server([OverloadedError("slow down", status=429)] * 1000)

    async def go() -> None:
        with pytest.raises(OverloadedError):
            await Gateway(server, 8).chat(ONE, ask("a"), timeout=60)

    virtually(go)


@pytest.mark.parametrize(
    "failure",
    [
        OverloadedError("busy", status=503),
        UnreachableError("gone"),
        ServerError("broken", status=500),
        RejectedError("too long", status=400),
    ],
)
def test_other_failures_are_the_runs_own_to_try_again(failure: LLMError) -> None:
    server = Server([failure])

    async def go() -> None:
        with pytest.raises(type(failure)):
            await Gateway(server, 8).chat(ONE, ask("a"), timeout=60)

    virtually(go)
    assert len(server.asked) == 1


def test_requests_per_minute_hold_for_all_runs() -> None:
    server = Server()

    async def go() -> None:
        gateway = Gateway(server, 100, requests_per_minute=60)
        async with anyio.create_task_group() as tasks:
            for number in range(60):
                for sender in (ONE, TWO):
                    tasks.start_soon(lambda whose=sender, n=number: gateway.chat(whose, ask(str(n)), timeout=60))  # type: ignore[misc]

    virtually(go)
    assert len(server.at) == 120
    assert max(server.at) - min(server.at) == pytest.approx(119, abs=3)
    half = [request for request, at in zip(server.asked, server.at, strict=True) if at < 60]
    assert 50 <= len(half) <= 70


def test_too_many_waiting_requests_of_a_run_are_turned_away_and_no_others() -> None:
    assert MOST_WAITING >= 1000
    server = Server()

    async def go() -> None:
        gateway = Gateway(server, 1, most_waiting=2)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(lambda: gateway.chat(ONE, ask("a"), timeout=60))
            await anyio.sleep(0.1)
            with pytest.raises(OverloadedError, match="2 requests of this run wait already") as caught:
                await gateway.chat(ONE, ask("a"), timeout=60)
            assert caught.value.retry_after == RETRY_SECONDS
            await gateway.chat(TWO, ask("a"), timeout=60)

    virtually(go)


def test_a_cancelled_request_leaves_its_place_to_others() -> None:
    server = Server()

    async def go() -> None:
        gateway = Gateway(server, 1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: gateway.chat(ONE, ask("a"), timeout=60))
            await anyio.sleep(0.1)
            with anyio.move_on_after(0.1):
                await gateway.chat(TWO, ask("waits"), timeout=60)
            tasks.cancel_scope.cancel()
        assert (await gateway.chat(TWO, ask("b"), timeout=60)).text == "fine"
        assert [(account.open, account.in_flight) for account in gateway.accounts()] == [(0, 0), (0, 0)]

    virtually(go)
    assert [request.messages[0].content for request in server.asked] == ["a", "b"]


def test_embeddings_are_shared_out_and_models_passed_on() -> None:
    async def go() -> None:
        gateway = Gateway(Server(), 1)
        reply = await gateway.embed(ONE, EmbedRequest("e", ("a", "b")), timeout=60)
        assert (reply.vectors, await gateway.models()) == (((1.0,), (1.0,)), ("m",))
        assert [account.usage for account in gateway.accounts()] == [Usage(3)]

    virtually(go)
