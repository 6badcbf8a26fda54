"""All calls through the gate are asked alike, and what they cost is known or charged in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from bench.confirm.gate import Gate, Sampling, serving, url_of
from bench.confirm.meter import CapReachedError, Meter, Paid, longest
from flowevolve._util.tasks import run_all
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    LLMError,
    Message,
    RejectedError,
    UnreachableError,
    Usage,
)
from flowevolve.llm.client.accounting import Price

pytestmark = pytest.mark.anyio

ASKED = (Message("user", "How?"),)
LONGEST = longest(ASKED, 50)


class Endpoint:
    """Answers as it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        self.answers: list[ChatReply | LLMError] = []

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else ChatReply("So.", Usage(5, 3))
        if isinstance(answer, LLMError):
            raise answer
        return answer

    async def models(self) -> tuple[str, ...]:
        return ("m",)

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


@pytest.fixture
def gate_of(endpoint: Endpoint, tmp_path: Path) -> Iterator[Callable[[float], Gate]]:
    meters = list[Meter]()

    def make(tokens: float) -> Gate:
        meters.append(Meter(tmp_path / "paid.jsonl", {"tokens": tokens}, Price(0, 0, 0)))
        return Gate(endpoint, meters[-1], Sampling("m", 0.7, 50, 4))

    yield make
    for each in meters:
        with closing(each):
            pass


async def test_every_call_is_asked_with_the_same_settings(endpoint: Endpoint, gate_of: Callable[[float], Gate]) -> None:
    gate = gate_of(1000)
    await gate.ask("a", ASKED)
    await gate.ask("b", ASKED, max_tokens=9000)
    await gate.ask("b", ASKED, max_tokens=20)
    assert [(each.model, each.temperature, each.max_tokens) for each in endpoint.requests] == [
        ("m", 0.7, 50),
        ("m", 0.7, 50),
        ("m", 0.7, 20),
    ]
    assert len({each.seed for each in endpoint.requests}) == 3
    assert (gate.meter.paid("a").calls, gate.meter.paid("b").usage) == (1, Usage(10, 6))


async def test_what_is_not_known_is_charged_in_full(endpoint: Endpoint, gate_of: Callable[[float], Gate]) -> None:
    gate = gate_of(1000)
    endpoint.answers = [ChatReply("So.")]
    await gate.ask("unsaid", ASKED)
    assert gate.meter.paid("unsaid").usage == LONGEST
    endpoint.answers = [RejectedError("too long")]
    with pytest.raises(RejectedError):
        await gate.ask("rejected", ASKED)
    assert gate.meter.paid("rejected").usage == Usage()


async def test_each_attempt_is_charged(
    endpoint: Endpoint, gate_of: Callable[[float], Gate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowevolve.llm.client.retry.RetryPolicy._wait", lambda *_: 0.0)
    gate = gate_of(1000)
    endpoint.answers = [UnreachableError("gone")]
    await gate.ask("a", ASKED)
    assert gate.meter.paid("a").usage == LONGEST + Usage(5, 3)


async def test_a_cap_is_never_passed(endpoint: Endpoint, gate_of: Callable[[float], Gate]) -> None:
    gate = gate_of(LONGEST.total_tokens + 10)
    await gate.ask("a", ASKED)
    await gate.ask("b", ASKED)
    with pytest.raises(CapReachedError):
        await gate.ask("a", ASKED)
    assert gate.capped
    assert len(endpoint.requests) == 2


async def test_a_call_waits_for_others_that_may_cost_less(endpoint: Endpoint, gate_of: Callable[[float], Gate]) -> None:
    gate = gate_of(LONGEST.total_tokens + 30)
    await run_all([partial(gate.ask, "a", ASKED)] * 4)
    assert gate.meter.paid("a") == Paid(4, Usage(20, 12))


async def test_over_http_each_work_has_an_address(endpoint: Endpoint, gate_of: Callable[[float], Gate]) -> None:
    gate = gate_of(2 * LONGEST.total_tokens)
    body = {"model": "another", "messages": [{"role": "user", "content": "How?"}], "temperature": 0.1}
    async with serving(gate) as address, aiohttp.ClientSession() as session:
        url = url_of(address, "rows/1/gepa")
        async with session.get(f"{url}/models") as answer:
            assert (await answer.json())["data"][0]["id"] == "m"
        async with session.post(f"{url}/chat/completions", json=body) as answer:
            assert (await answer.json())["choices"][0]["message"]["content"] == "So."
        endpoint.answers = [RejectedError("too long")]
        async with session.post(f"{url}/chat/completions", json=body) as answer:
            assert answer.status == 400
        gate.meter.settle(gate.meter.reserve("other", LONGEST), LONGEST)
        async with session.post(f"{url}/chat/completions", json=body) as answer:
            assert answer.status == 402
        async with session.post(f"{url}/chat/completions", json={}) as answer:
            assert answer.status == 400
    assert (endpoint.requests[0].model, endpoint.requests[0].temperature) == ("m", 0.7)
    assert gate.meter.paid("rows/1/gepa").usage == Usage(5, 3)
