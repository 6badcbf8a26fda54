"""Who is next: each run gets its part of the tokens, whatever its requests are like, how many it has, and when it comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve.core.model import ChatReply, ChatRequest, Message, UnreachableError, Usage
from flowevolve.gateway.gateway import Gateway
from flowevolve.gateway.shares import MOST_IDLE_RUNS, FairShares, cost
from flowevolve.llm.transports.sender import Sender

SECONDS_PER_TOKEN = 0.01


@dataclass
class Server:
    """Takes as long as an answer is, and counts the cost of what it has done for each run by the end of each answer."""

    done: list[tuple[float, str, float]] = field(default_factory=list)
    """When, for whom and how much."""
    is_gone: bool = False

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        assert request.max_tokens is not None
        await anyio.sleep(request.max_tokens * SECONDS_PER_TOKEN)
        if self.is_gone:
            raise UnreachableError("gone")
        usage = Usage(10, request.max_tokens)
        self.done.append((anyio.current_time(), request.messages[0].content, cost(usage)))
        return ChatReply("answer", usage)

    async def models(self) -> tuple[str, ...]:
        return ("m",)

    async def aclose(self) -> None:
        pass

    def had(self, begin: float, end: float) -> Mapping[str, float]:
        """What was done for each run between these times."""
        names = {name for _, name, _ in self.done}
        return {
            name: sum(price for at, whose, price in self.done if whose == name and begin < at <= end) for name in names
        }


@dataclass(frozen=True)
class Load:
    """A run that always has so many requests open."""

    sender: Sender
    open: int = 8
    tokens: Callable[[int], int] = lambda number: 100
    begins: float = 0.0
    ends: float = inf

    async def go(self, gateway: Gateway, until: float) -> None:
        await anyio.sleep(self.begins)
        async with anyio.create_task_group() as tasks:
            for worker in range(self.open):
                tasks.start_soon(self._work, gateway, worker, min(until, self.ends))

    async def _work(self, gateway: Gateway, worker: int, until: float) -> None:
        number = worker
        while anyio.current_time() < until:
            request = ChatRequest("m", (Message("user", self.sender.run),), max_tokens=self.tokens(number))
            await gateway.chat(self.sender, request, timeout=60)
            number += self.open


def shared(*loads: Load, concurrency: int = 4, until: float = 200.0) -> Server:
    """What the server did for these runs."""
    server = Server()

    async def go() -> None:
        gateway = Gateway(server, concurrency)
        async with anyio.create_task_group() as tasks:
            for load in loads:
                tasks.start_soon(load.go, gateway, until)

    clock.run(go, clock="virtual")
    return server


@given(
    lengths=st.lists(st.integers(5, 200), min_size=2, max_size=4),
    shares=st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=5, max_size=5),
    concurrency=st.integers(1, 6),
    wide=st.integers(7, 30),
)
def test_runs_with_enough_requests_get_tokens_by_their_shares(
    lengths: list[int], shares: list[float], concurrency: int, wide: int
) -> None:
    loads = [
        Load(Sender(f"run-{index}", share), wide if index else 7, lambda number, most=most: 1 + number * 7 % most)  # type: ignore[misc]
        for index, (most, share) in enumerate(zip(lengths, shares, strict=False))
    ]
    until = 60.0
    had = shared(*loads, concurrency=concurrency, until=until).had(0.0, until)
    per_share = [had.get(load.sender.run, 0.0) / load.sender.share for load in loads]
    # The bound of the paper's theorem 4.4: twice the dearest batch, whatever the time.
    dearest = cost(Usage(10, max(lengths)))
    assert max(per_share) - min(per_share) <= 2 * concurrency * dearest / min(shares)


def test_many_requests_get_no_more_than_few() -> None:
    server = shared(Load(Sender("greedy"), 500), Load(Sender("modest"), 4))
    had = server.had(0, 200)
    assert had["modest"] == pytest.approx(had["greedy"], rel=0.05)


def test_what_a_run_does_not_use_goes_to_the_others() -> None:
    server = shared(Load(Sender("one"), 1), Load(Sender("two")), Load(Sender("three")))
    had = server.had(0, 200)
    assert sum(had.values()) == pytest.approx(4 * 200 / (100 * SECONDS_PER_TOKEN) * cost(Usage(10, 100)), rel=0.05)
    assert 0 < had["one"] < sum(had.values()) / 4  # one request at a time is a quarter at most
    assert had["two"] == pytest.approx(had["three"], rel=0.05)


def test_a_run_that_comes_later_takes_its_part_and_no_more() -> None:
    server = shared(Load(Sender("first")), Load(Sender("second"), begins=100.0))
    assert server.had(0, 100).keys() >= {"first"}
    late = server.had(100, 200)
    assert late["second"] == pytest.approx(late["first"], rel=0.05)


def test_a_run_that_was_away_does_not_catch_up() -> None:
    away = Load(Sender("away"), ends=20.0)
    server = shared(away, Load(Sender("stays")), replace(away, begins=120.0, ends=inf))
    back = server.had(121, 200)
    assert back["away"] == pytest.approx(back["stays"], rel=0.05)


def test_who_used_what_was_free_does_not_pay_for_it_to_a_run_with_one_long_request_at_work() -> None:
    other = Sender("other")
    server = shared(
        Load(Sender("free")),
        Load(other, 1, lambda number: 6500, ends=1.0),
        Load(other, begins=60.0),
        concurrency=10,
    )
    had = server.had(60, 200)
    assert had["free"] == pytest.approx(had["other"], rel=0.05)


def test_priorities_leave_the_others_what_is_left() -> None:
    server = shared(Load(Sender("urgent", priority=-1), ends=100.0), Load(Sender("two", share=2)), Load(Sender("one")))
    urgent, after = server.had(1, 100), server.had(105, 200)
    assert urgent["urgent"] == sum(urgent.values())
    assert after["two"] == pytest.approx(2 * after["one"], rel=0.05)


def test_an_urgent_run_that_comes_later_shares_with_the_urgent_one_that_is_there() -> None:
    there, late = Sender("there", priority=-1), Sender("late", priority=-1)
    server = shared(Load(there), Load(Sender("waits")), Load(late, begins=100.0))
    had = server.had(100, 200)
    assert had["late"] == pytest.approx(had["there"], rel=0.05)


def test_a_share_that_changes_holds_from_then_on() -> None:
    server = shared(
        Load(Sender("changes", share=1), ends=100.0),
        Load(Sender("changes", share=3), begins=101.0),
        Load(Sender("stays")),
    )
    before, after = server.had(0, 100), server.had(110, 200)
    assert before["changes"] == pytest.approx(before["stays"], rel=0.05)
    assert after["changes"] == pytest.approx(3 * after["stays"], rel=0.1)


def test_work_without_an_answer_is_charged_as_well() -> None:
    server = Server(is_gone=True)
    gateway = Gateway(server, 1)

    async def go() -> None:
        request = ChatRequest("m", (Message("user", "a"),), max_tokens=10)
        with pytest.raises(UnreachableError):
            await gateway.chat(Sender("a"), request, timeout=60)
        with anyio.move_on_after(0.05):
            await gateway.chat(Sender("b"), request, timeout=60)

    clock.run(go, clock="virtual")
    assert [account.spent > 0 for account in gateway.accounts()] == [True, True]
    assert [(account.open, account.in_flight) for account in gateway.accounts()] == [(0, 0), (0, 0)]


def test_runs_that_are_gone_are_forgotten() -> None:
    order = FairShares()
    for number in range(3 * MOST_IDLE_RUNS):
        with order.opened(Sender(f"run-{number}")):
            pass
    assert len(order.accounts()) <= MOST_IDLE_RUNS + 1
    assert order.accounts()[-1].sender.run == f"run-{3 * MOST_IDLE_RUNS - 1}"


def test_a_run_that_goes_on_for_long_is_not_forgotten_for_others_that_came_later() -> None:
    order = FairShares()
    for number in range(3 * MOST_IDLE_RUNS):
        for run in ("long", f"run-{number}"):
            with order.opened(Sender(run)) as account:
                order.answered(account, Usage(1, 1))
    requests = {account.sender.run: account.requests for account in order.accounts()}
    assert requests["long"] == 3 * MOST_IDLE_RUNS
