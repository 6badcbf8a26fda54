"""Several models behind a role: which one a call draws, and that it stays with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import BackendRefusedError, InputError
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.model import ChatReply, ChatRequest, Message, ServerError, Usage
from flowevolve.llm.client.accounting import Account, Price
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.ensemble import Arm, ByWeight, Ensemble
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.client.role import Role
from flowevolve.llm.scheduling.scheduler import Scheduler

pytestmark = pytest.mark.anyio


class Server:
    """Takes a second for every answer; fails as often as it is told."""

    base_url = "http://fake/v1"

    def __init__(self, failures: int = 0, models: Sequence[str] = ("a", "b", "c")) -> None:
        self.failures = failures
        self.served = tuple(models)
        self.asked: list[str] = []
        self.open = self.most = 0

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        self.asked.append(request.model)
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await anyio.sleep(1)
        finally:
            self.open -= 1
        if len(self.asked) <= self.failures:
            raise ServerError("500")
        return ChatReply("fine", Usage(100, 10), model=f"{request.model}-2024")

    async def models(self) -> tuple[str, ...]:
        return self.served

    async def aclose(self) -> None:
        pass


def scope(item: str = "1", index: int = 0) -> CallScope:
    return CallScope("propose", item, None, 0, index)


def ensemble(weights: Sequence[float] = (1, 2, 5), server: Server | None = None) -> Ensemble:
    server = server or Server()
    return Ensemble([Model(server, name) for name in "abc"[: len(weights)]], weights)


def client(roles: dict[str, Role], records: list[CallRecord] | None = None) -> LLMClient:
    retry = RetryPolicy(base_seconds=1, max_seconds=1, jitter=0)
    account = Account({"a": Price(1, 1, 1), "b": Price(1000, 1000, 1000)})
    return LLMClient(roles, Scheduler(16), retry, 7, ([] if records is None else records).append, account)


def test_models_are_drawn_as_often_as_their_weights_say() -> None:
    drawn = Counter(ensemble().draw(0, scope(str(item))).name for item in range(8000))
    assert drawn == {
        "a": pytest.approx(1000, abs=100),
        "b": pytest.approx(2000, abs=100),
        "c": pytest.approx(5000, abs=100),
    }


def test_the_same_work_draws_the_same_model_whatever_else_runs() -> None:
    works = [scope(str(item), index) for item in range(50) for index in range(2)]
    first, second = ensemble(), ensemble()
    forwards = {call_kind: first.draw(7, call_kind).name for call_kind in works}
    backwards = {call_kind: second.draw(7, call_kind).name for call_kind in reversed(works)}
    assert forwards == backwards
    assert forwards != {call_kind: ensemble().draw(8, call_kind).name for call_kind in works}


def test_draws_are_the_same_in_every_process() -> None:
    assert "".join(ensemble().draw(7, scope(str(item))).name for item in range(12)) == "bbbaabbccacc"


@given(st.lists(st.floats(0, 100), min_size=1, max_size=5), st.floats(0, 1, exclude_max=True))
def test_a_model_without_weight_is_never_drawn(weights: list[float], draw: float) -> None:
    if sum(weights) > 0:
        assert weights[ByWeight().choose([Arm(weight) for weight in weights], draw)] > 0


@pytest.mark.parametrize("weights", [(), (0, 0), (2, -1)])
def test_weights_that_are_none_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="an ensemble needs models"):
        ensemble(weights)


async def test_a_call_stays_with_its_model_and_costs_what_that_costs() -> None:
    server = Server(failures=2)
    calls: list[CallRecord] = []
    asked = client({"r": ensemble((1, 1), server)}, calls)
    reply = await asked.chat("r", [Message("user", "hello")], scope=scope())
    assert len(server.asked) == 3
    assert len(set(server.asked)) == 1
    assert [call.request.model for call in calls] == [server.asked[0]]
    assert reply.dollars == asked.account.totals().dollars == pytest.approx({"a": 110e-6, "b": 0.11}[server.asked[0]])


async def test_check_asks_for_every_model_at_its_own_backend() -> None:
    here, there = Server(), Server(models=("a", "b"))
    both = Ensemble([Model(here, "a"), Model(there, "c")], [1, 1])
    with pytest.raises(BackendRefusedError, match="does not serve 'c', which model names; it serves a, b"):
        await client({"r": both}).check()


async def test_a_roles_own_bound_holds_inside_that_of_the_run() -> None:
    free, bound = Server(), Server()
    asked = client({"free": Model(free, "a"), "bound": Model(bound, "a", scheduler=Scheduler(3))})
    async with anyio.create_task_group() as tasks:
        for item in range(12):
            for role in ("bound", "free"):
                tasks.start_soon(partial(asked.chat, role, [Message("user", "x")], scope=scope(f"{item}")))
    assert (free.most, bound.most) == (12, 3)
    assert anyio.current_time() == 4  # what waits at its own bound takes no slot of the run's sixteen
