"""A call that fails is made again, without its slot, and a cancelled one leaves no trace."""

from contextlib import suppress
from functools import partial

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util.waits import waited_for
from flowevolve.core.model import LLMError, OverloadedError, RejectedError, ServerError, UnreachableError, Usage
from flowevolve.llm.client.retry import RetryPolicy
from tests.support.scripted_llm import Rig, Scripted

pytestmark = pytest.mark.anyio


async def test_backs_off_between_attempts_and_repeats_the_same_request() -> None:
    transport = Scripted(ServerError("500"), OverloadedError("429", retry_after=20), UnreachableError("reset"), "fine")
    rig = Rig(transport)
    assert (await rig.ask()).text == "fine"
    assert transport.sent_at == [0, 1, 21, 22]
    assert len(set(map(id, transport.requests))) == 1
    [record] = rig.records
    assert (record.attempts, record.queued, record.started, record.finished) == (4, 0, 22, 22)
    assert rig.client.account.totals().retries == 3


async def test_calls_that_a_busy_server_sends_away_do_not_come_back_as_a_herd() -> None:
    busy = OverloadedError("503", status=503, retry_after=40)
    transport = Scripted(*[busy] * 200, *["fine"] * 200)
    rig = Rig(transport, limit=200, retry=RetryPolicy())
    async with anyio.create_task_group() as tasks:
        for item in range(200):
            tasks.start_soon(partial(rig.ask, item=str(item)))
    back = [at for at in transport.sent_at if at]
    assert len(back) == 200
    assert min(back) >= 40
    assert max(back) <= 50
    assert max(sum(start <= at < start + 1 for at in back) for start in range(40, 50)) < 40


async def test_the_slot_is_free_while_backing_off() -> None:
    slow = Scripted(ServerError("500"), "late")
    rig = Rig(slow, Scripted("early"), limit=1, retry=RetryPolicy(base_seconds=30, max_seconds=30))
    finished = []

    async def ask(role) -> None:
        finished.append((await rig.ask(role)).text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "r0")
        await anyio.sleep(1)
        tasks.start_soon(ask, "r1")
    assert finished == ["early", "late"]


async def test_a_pause_before_the_next_attempt_is_told_as_a_wait_for_the_server() -> None:
    rig, seen = Rig(Scripted(UnreachableError("refused"), "fine")), list[str]()

    async def look() -> None:
        seen.append(waited_for())
        await anyio.sleep(0.5)
        seen.append(waited_for())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        tasks.start_soon(rig.ask)
    assert seen == ["", "the time to ask the server again, for 0 s"]
    assert waited_for() == ""


@pytest.mark.parametrize("error", [RejectedError("prompt too long", status=400), ServerError("broken", status=500)])
async def test_a_requests_own_trouble_reaches_the_caller_as_it_is(error) -> None:
    rig = Rig(Scripted(error))
    with pytest.raises(type(error)) as caught:
        await rig.ask(candidate="c1")
    assert caught.value is error
    [record] = rig.records
    assert (record.reply, record.error) == (None, f"{type(error).__name__}: {error}")
    assert record.attempts == (3 if isinstance(error, ServerError) else 1)
    totals = rig.client.account.totals()
    assert (totals.requests, totals.failed, totals.usage) == (1, 1, Usage())


async def test_kinds_of_trouble_are_counted_apart() -> None:
    errors = [OverloadedError("429")] * 5 + [ServerError("500")] * 2
    assert (await Rig(Scripted(*errors, "fine")).ask()).text == "fine"


@pytest.mark.parametrize("after", [1, 6, 12], ids=["waiting for a slot", "in flight", "backing off"])
async def test_a_cancelled_call_leaves_no_trace_and_no_slot(after) -> None:
    busy, transport = Scripted(takes=5), Scripted(ServerError("500"), takes=5)
    rig = Rig(busy, transport, limit=1, retry=RetryPolicy(base_seconds=30, max_seconds=30))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.ask, "r0")
        await anyio.sleep(0.1)
        with anyio.move_on_after(after) as scope:
            await rig.ask("r1")
    assert scope.cancelled_caught
    assert [record.role for record in rig.records] == ["r0"]
    stats = rig.scheduler.stats()
    assert (stats.in_flight, stats.waiting) == (0, 0)
    assert rig.client.account.totals().requests == 1


outcomes = st.sampled_from(
    ["fine", ServerError("500"), OverloadedError("429", retry_after=3), UnreachableError("reset"), RejectedError("400")]
)


@given(st.lists(st.tuples(st.lists(outcomes, min_size=1, max_size=4), st.none() | st.integers(0, 12)), max_size=8))
def test_every_call_that_finishes_is_reported_and_accounted_exactly_once(jumping_clock, calls) -> None:
    finished = []

    async def main() -> None:
        # Ending every script well keeps patience out of it.
        rig = Rig(*[Scripted(*script, "fine", takes=1) for script, _ in calls], limit=2)

        async def one(role, cancelled_after) -> None:
            with anyio.move_on_after(cancelled_after):
                with suppress(LLMError):
                    await rig.ask(role)
                finished.append(role)

        async with anyio.create_task_group() as tasks:
            for number, (_, cancelled_after) in enumerate(calls):
                tasks.start_soon(one, f"r{number}", cancelled_after)
        assert [record.role for record in rig.records] == finished
        totals = rig.client.account.totals()
        assert totals.requests == len(rig.records)
        assert totals.failed == sum(record.reply is None for record in rig.records)
        assert totals.retries == sum(record.attempts - 1 for record in rig.records)
        assert all((record.reply is None) != (record.error is None) for record in rig.records)
        assert rig.scheduler.stats().in_flight == 0

    anyio.run(main, backend_options=jumping_clock)
