"""How calls are built from roles and scopes, seeded, ordered, counted and reported."""

from dataclasses import replace
from functools import partial

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.core.calls import CallScope, call_seed
from flowevolve.core.model import Message, OverloadedError, ServerError, Transport, Usage
from flowevolve.llm.client.accounting import Price
from flowevolve.llm.client.pending_call import server_priority
from flowevolve.policies.ordering import LaterFirst
from tests.support.scripted_llm import ASK, Rig, Scripted

pytestmark = pytest.mark.anyio


def say(text):
    return [Message("user", text)]


def test_the_fake_is_a_transport() -> None:
    assert isinstance(Scripted(), Transport)


async def test_a_call_is_built_from_role_and_scope_accounted_and_reported() -> None:
    transport = Scripted("fine", takes=2)
    rig = Rig(
        transport,
        temperature=0.5,
        max_tokens=99,
        extra={"top_k": 3},
        send_priority=True,
        prices={"m": Price(1, 0.5, 10)},
    )
    await anyio.sleep(1)
    reply = await rig.ask(priority=4, candidate="c1")
    assert reply.text == "fine"
    [request] = transport.requests
    assert (request.model, request.messages, request.temperature, request.max_tokens) == ("m", tuple(ASK), 0.5, 99)
    assert (request.priority, request.extra) == (4001, {"top_k": 3})  # rank 4, the only one of its group
    [record] = rig.records
    assert (record.role, record.scope.candidate, record.request, record.reply) == ("r0", "c1", request, reply)
    assert (record.error, record.attempts, record.queued, record.started, record.finished) == (None, 1, 1, 1, 3)
    totals = rig.client.account.totals()
    assert (totals.requests, totals.failed, totals.retries, totals.latency_seconds) == (1, 0, 0, 2)
    assert totals.dollars == reply.dollars == pytest.approx(180e-6)
    assert rig.client.account.by_model() == {"m": totals}


async def test_a_call_may_override_the_roles_sampling() -> None:
    transport = Scripted()
    rig = Rig(transport, temperature=0.5, max_tokens=99)
    await rig.ask(temperature=0.0, max_tokens=1)
    assert (transport.requests[0].temperature, transport.requests[0].max_tokens) == (0.0, 1)


async def test_limits_are_those_of_answers_and_have_room_for_thinking() -> None:
    transport = Scripted()
    rig = Rig(transport, max_tokens=99, thinking_tokens=1000)
    await rig.ask()
    await rig.ask(max_tokens=400)
    assert [request.max_tokens for request in transport.requests] == [1099, 1400]
    unlimited = Rig(transport, thinking_tokens=1000)
    await unlimited.ask()
    assert transport.requests[-1].max_tokens is None


async def test_chats_may_have_fields_of_their_own() -> None:
    transport = Scripted()
    await Rig(transport, extra={"a": 1}, chat_extra={"b": 2}).ask()
    await Rig(transport, extra={"a": 1}).ask()
    assert [request.extra for request in transport.requests] == [{"b": 2}, {"a": 1}]


async def test_what_a_server_may_not_understand_is_left_out() -> None:
    transport = Scripted()
    await Rig(transport, send_seed=False).ask(priority=5)
    assert (transport.requests[0].seed, transport.requests[0].priority) == (None, None)


async def test_a_server_that_schedules_is_told_rank_and_what_is_left_of_the_group() -> None:
    transport = Scripted(takes=1)
    rig = Rig(transport, limit=1, send_priority=True)
    async with anyio.create_task_group() as tasks:
        for index in range(3):
            tasks.start_soon(partial(rig.ask, index=index, priority=2, item="7/example"))
    assert [request.priority for request in transport.requests] == [2001, 2002, 2001]
    assert server_priority(2, 5000) < server_priority(3, 1)


async def test_examples_that_took_long_before_go_first() -> None:
    class Lengths(Scripted):
        async def chat(self, request, *, timeout):
            reply = await super().chat(request, timeout=timeout)
            return replace(reply, usage=Usage(1, int(request.messages[0].content)))

    transport = Lengths(takes=1)
    rig = Rig(transport, limit=1, order=LaterFirst())

    async def evaluate(item) -> list[str]:
        already = len(transport.requests)
        async with anyio.create_task_group() as tasks:
            for tokens in ("10", "500", "90"):
                scope = CallScope("evaluate", f"{item}/{tokens}", None, 0, 0)
                tasks.start_soon(partial(rig.client.chat, "r0", say(tokens), scope=scope))
        return [request.messages[0].content for request in transport.requests[already:]]

    assert await evaluate(1) == ["10", "500", "90"]
    assert (await evaluate(2))[1:] == ["500", "90"]  # the first finds the gate empty
    observed = rig.client.response_times.take_sample()
    assert (observed.answered, observed.refused, observed.latency_seconds) == (6, 0, 1)
    assert observed.seconds_per_token == pytest.approx(6 / 1200)
    assert rig.client.response_times.take_sample().seconds_per_token is None


async def test_refusals_for_want_of_capacity_are_counted() -> None:
    rig = Rig(Scripted(OverloadedError("429"), ServerError("500"), OverloadedError("429"), "fine"))
    await rig.ask()
    assert rig.client.response_times.take_sample().refused == 2
    assert rig.client.response_times.take_sample().refused == 0


async def test_seeds_follow_the_work_and_not_the_order() -> None:
    async def seeds(indexes, seed=7):
        transport = Scripted()
        rig = Rig(transport, seed=seed)
        for index in indexes:
            await rig.ask(index=index)
        return dict(zip(indexes, [request.seed for request in transport.requests], strict=True))

    forwards, backwards = await seeds(range(5)), await seeds(range(4, -1, -1))
    assert forwards == backwards
    assert len(set(forwards.values())) == 5
    assert forwards != await seeds(range(5), seed=8)


def test_seeds_are_the_same_in_every_process() -> None:
    assert call_seed(7, CallScope("generate", "1/a", "ignored", 3, 0)) == 257834693


@given(st.integers(), st.text(), st.text(), st.integers(0, 9))
def test_seeds_fit_31_bits(seed, stage, item, index) -> None:
    assert 0 <= call_seed(seed, CallScope(stage, item, None, 0, index)) < 2**31


async def test_an_unknown_role_is_the_users_mistake() -> None:
    with pytest.raises(InputError, match=r"there is no LLM role 'judge'; .*it has: r0$"):
        await Rig(Scripted()).ask("judge")
