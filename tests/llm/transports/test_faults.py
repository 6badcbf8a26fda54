"""Whatever a server does: a call ends, with a reply or an error of its kind, and leaves nothing behind."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

import anyio
import pytest

from flowevolve._util import clock
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.model import LLMError, UnreachableError
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling import model_rates
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport
from flowevolve.sim import faults as sim_faults
from flowevolve.sim.faults import FAULTS, RETRY_AFTER_SECONDS, Fault, Faults
from flowevolve.sim.server import serve
from tests.support.faults import RAISES, Script, failing, leaving_nothing, said

SHORT, LONG = 0.25, 60.0
"""Seconds to wait in vain, and for what comes however busy the machine is."""
WAITING: tuple[Fault, ...] = ("hang", "stall", "trickle")
QUICK = RetryPolicy(base_seconds=0.001, max_seconds=0.004)

transports = pytest.mark.parametrize("make", [OpenAITransport, AioHTTPTransport])
streaming = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
every_fault = pytest.mark.parametrize("fault", FAULTS)


def no_pauses(monkeypatch) -> None:
    """Refusals are to hold nobody back: how they do has tests of its own, on the virtual clock."""
    monkeypatch.setattr(sim_faults, "RETRY_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(model_rates, "LEAST_PAUSE", 0.0)
    monkeypatch.setattr(model_rates, "FIRST_RATE", 1e6)
    monkeypatch.setattr(model_rates, "LEAST_RATE", 1e6)


async def outcome(transport, request, timeout):
    try:
        return await transport.chat(request, timeout=timeout)
    except LLMError as error:
        return error


@pytest.mark.anyio
@transports
@streaming
@every_fault
async def test_every_fault_ends_the_call_and_frees_its_connection(make, stream, fault) -> None:
    script = Script(fault)
    async with leaving_nothing(), serve(failing(script)) as url:
        transport = make(url, None, max_connections=1)
        try:
            request = replace(said("hello"), stream=stream)
            first = await outcome(transport, request, SHORT if fault in WAITING else LONG)
            script.stop()
            second = await transport.chat(request, timeout=LONG)
        finally:
            await transport.aclose()
    assert second.text == "hello"
    raised = RAISES[fault]
    if raised is None:
        assert (first.text, first.usage.total_tokens) == ("hello", 0)
    else:
        assert type(first) is raised
        assert getattr(first, "retry_after", None) == (RETRY_AFTER_SECONDS if fault == "retry_after" else None)


@streaming
@every_fault
def test_inside_the_process_a_fault_is_the_same_error(stream, fault) -> None:
    async def go():
        return await outcome(failing(Script(fault)), replace(said("hello"), stream=stream), LONG)

    found = clock.run(go, clock="virtual")
    raised = RAISES[fault]
    assert found.usage.total_tokens == 0 if raised is None else type(found) is raised


@transports
@pytest.mark.anyio
async def test_a_server_that_falls_silent_is_given_up_before_the_time_for_the_answer(make) -> None:
    async with leaving_nothing(), serve(failing(Script("stall"))) as url:
        transport = make(url, None, max_connections=1)
        try:
            request = replace(said("hello"), stream=True, idle_seconds=1.5)
            with pytest.raises(UnreachableError, match=r"nothing more came for 1.5 s"):
                await transport.chat(request, timeout=LONG)
            assert (await transport.chat(request, timeout=LONG)).text == "hello"
        finally:
            await transport.aclose()


def test_inside_the_process_too() -> None:
    async def go():
        request = replace(said("hello"), stream=True, idle_seconds=2.0)
        assert type(await outcome(failing(Script("stall")), request, 600.0)) is UnreachableError
        return anyio.current_time()

    assert clock.run(go, clock="virtual") == pytest.approx(2.0)


@pytest.mark.anyio
@transports
@streaming
@pytest.mark.parametrize(
    ("kinds", "calls", "timeout"),
    [(tuple(fault for fault in FAULTS if fault not in WAITING), 100, LONG), (WAITING, 10, SHORT)],
    ids=["at once", "in vain"],
)
async def test_under_faults_every_call_is_answered_or_counted_as_failed(
    make, stream, kinds, calls, timeout, monkeypatch
) -> None:
    no_pauses(monkeypatch)
    records: list[CallRecord] = []
    answered: list[str] = []
    faults, scheduler = Faults(0.6, kinds, seed=4), Scheduler(16)
    async with leaving_nothing(), serve(failing(faults)) as url:
        transport = make(url, None, max_connections=16)
        role = Model(transport, "m", timeout_seconds=timeout, stream=stream)
        client = LLMClient({"task": role}, scheduler, QUICK, 0, records.append)

        async def call(number) -> None:
            scope = CallScope("stage", str(number), None, 0, 0)
            with suppress(LLMError):
                answered.append((await client.chat("task", said(f"I am {number}").messages, scope=scope)).text)

        async with anyio.create_task_group() as tasks:
            for number in range(calls):
                tasks.start_soon(call, number)
        await transport.aclose()
    assert set(faults.played) == set(kinds)
    totals = client.account.totals()
    assert (totals.requests, len(records), len(set(answered))) == (calls, calls, len(answered))
    assert totals.failed == calls - len(answered) == sum(record.error is not None for record in records)
    assert totals.retries >= faults.played.total() - faults.played["no_usage"] - totals.failed > 0
    assert scheduler.stats().in_flight == 0


@pytest.mark.anyio
@transports
@pytest.mark.parametrize("fault", ["overloaded", "retry_after", "unavailable"])
async def test_a_storm_of_refusals_is_waited_out(make, fault, monkeypatch) -> None:
    no_pauses(monkeypatch)
    records: list[CallRecord] = []
    async with leaving_nothing(), serve(failing(Script(*[fault] * 150))) as url:
        transport = make(url, None, max_connections=8)
        client = LLMClient({"task": Model(transport, "m")}, Scheduler(8), QUICK, 0, records.append)
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                scope = CallScope("stage", str(number), None, 0, 0)
                tasks.start_soon(partial(client.chat, "task", said("hi").messages, scope=scope))
        await transport.aclose()
    assert [record.error for record in records] == [None] * 20
    assert client.account.totals().retries == 150
