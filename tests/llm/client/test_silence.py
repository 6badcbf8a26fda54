"""A backend that refuses for good, or is silent for longer than patience lasts, ends the run."""

import asyncio

import anyio
import pytest

from flowevolve._util.clock import VirtualClockLoop
from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError
from flowevolve._util.tasks import Pulse
from flowevolve.core.model import (
    LLMError,
    OutOfCreditError,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    UnreachableError,
)
from flowevolve.llm.client.client import FAILURES_BEFORE_GIVING_UP, MAX_UNANSWERED_IN_A_ROW, LLMClient
from tests.support.scripted_llm import STEADY, Rig, Scripted

pytestmark = pytest.mark.anyio


async def test_a_refusal_ends_the_run_and_names_model_and_backend() -> None:
    transport = Scripted(RefusedError("HTTP 401: bad key"))
    rig = Rig(transport)
    with pytest.raises(BackendRefusedError, match=r"http://fake/v1.*'m'.*bad key.*the API key"):
        await rig.ask()
    assert (len(transport.requests), len(rig.records)) == (1, 1)


@pytest.mark.parametrize("end", ["", "."])
async def test_an_account_without_money_is_told_as_such(end: str) -> None:
    rig = Rig(Scripted(OutOfCreditError(f"HTTP 429: you exceeded your quota{end}", status=429)))
    with pytest.raises(
        BackendRefusedError, match=r"exceeded your quota\. The account has no money or quota left"
    ) as caught:
        await rig.ask()
    assert "API key" not in str(caught.value)


@pytest.mark.parametrize("error", [UnreachableError("connection refused"), OverloadedError("429: slow down")])
async def test_a_backend_silent_for_longer_than_patience_ends_the_run(error) -> None:
    rig = Rig(Scripted(error))
    with pytest.raises(BackendUnreachableError, match=rf"http://fake/v1.* 63 s .*{error}.*llm.patience_seconds"):
        await rig.ask()
    assert len(rig.records) == 1
    assert anyio.current_time() == 1 + 2 + 4 + 7 * 8  # the first moment past 60 s at which an attempt failed


async def test_patience_starts_anew_with_every_success_of_the_backend() -> None:
    shared = Scripted(OverloadedError("429"))
    rig = Rig(shared)

    async def one_success() -> None:
        await anyio.sleep(50.5)
        shared.script[:] = ["fine", OverloadedError("429")]
        await rig.ask(index=1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one_success)
        with pytest.raises(BackendUnreachableError):
            await rig.ask()
    assert 50.5 + 60 <= anyio.current_time() < 50.5 + 60 + 8 + 5  # at most a backoff more, and a wait for the rate


@pytest.mark.parametrize("after", [0.5, 1.5, 2.5])
async def test_time_in_which_the_process_did_not_run_is_no_silence(after) -> None:
    """A laptop asleep for an hour, while a call waits for its next attempt or is making it."""
    down = UnreachableError("network is unreachable")
    rig = Rig(Scripted(down, down, down, "fine", takes=0.9), timeout_seconds=50)

    async def sleep() -> None:
        await anyio.sleep(after)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        loop.now += 3600

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleep)
        reply = await rig.ask()
    assert reply.text == "fine"
    assert 3600 < anyio.current_time() < 3620


async def test_another_backends_success_says_nothing() -> None:
    rig = Rig(Scripted(UnreachableError("refused")), Scripted())

    async def other() -> None:
        for index in range(100):
            await rig.ask("r1", index)
            await anyio.sleep(1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        with pytest.raises(BackendUnreachableError):
            await rig.ask()
        assert anyio.current_time() < 70


async def test_a_request_too_long_for_its_timeout_and_alone_in_flight_does_not_end_the_run() -> None:
    """Nothing else shows that the server is alive, so it is asked for its models."""
    endless = Scripted(takes=1000)
    rig = Rig(endless, timeout_seconds=100)
    with pytest.raises(UnreachableError, match="too slow"):
        await rig.ask()
    assert len(endless.requests) == 3
    endless.takes = 1
    assert (await rig.ask()).text == "fine"


async def test_one_that_is_silent_for_its_whole_timeout_and_does_not_tell_its_models_ends_the_run() -> None:
    rig = Rig(Scripted(takes=1000, models=UnreachableError("refused")), timeout_seconds=100)
    with pytest.raises(BackendUnreachableError, match="too slow"):
        await rig.ask()


async def test_who_is_answered_while_the_server_is_asked_for_its_models_shows_that_it_is_alive() -> None:
    class Slow(Scripted):
        async def models(self):
            await anyio.sleep(20)
            raise UnreachableError("busy")

    server = Slow(takes=1000)
    rig = Rig(server, timeout_seconds=100)

    async def other() -> None:
        await anyio.sleep(205)  # the first call's second attempt has ended, and the server is being asked
        server.takes = 1
        await rig.ask(index=1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        assert (await rig.ask()).text == "fine"


async def test_a_server_that_tells_its_models_and_answers_nothing_ends_the_run_too() -> None:
    rig = Rig(Scripted(takes=1000), timeout_seconds=100)
    for index in range(MAX_UNANSWERED_IN_A_ROW):
        with pytest.raises(UnreachableError):
            await rig.ask(index=index)
    with pytest.raises(BackendUnreachableError):
        await rig.ask(index=9)


async def test_silences_are_told() -> None:
    unanswered = Pulse()
    rig = Rig(Scripted(UnreachableError("reset"), ServerError("500"), "fine"))
    rig.client = LLMClient(rig.roles, rig.scheduler, STEADY, 1, rig.records.append, unanswered=unanswered)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.ask)
        await unanswered.wait()
        assert anyio.current_time() == 0


async def test_a_request_too_long_for_its_timeout_fails_alone() -> None:
    """Others are answered all the time, so the backend is never silent; without a bound this would go on for ever."""
    quick, endless = Scripted(takes=5), Scripted(takes=1000)

    class OneServer(Scripted):
        async def chat(self, request, *, timeout):
            return await (endless if request.max_tokens == 1000 else quick).chat(request, timeout=timeout)

    rig = Rig(OneServer(), timeout_seconds=50)

    async def others() -> None:
        for index in range(60):
            await rig.ask(index=index)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        with pytest.raises(UnreachableError, match="too slow"):
            await rig.ask(max_tokens=1000)
        tasks.cancel_scope.cancel()
    assert len(endless.requests) == 3


@pytest.mark.parametrize("error", [RejectedError("HTTP 400: no"), ServerError("HTTP 500: broken")])
async def test_a_role_of_which_every_call_fails_ends_the_run(error: LLMError) -> None:
    rig = Rig(Scripted("fine"), Scripted(error))
    await rig.ask("r0")
    for _ in range(FAILURES_BEFORE_GIVING_UP - 1):
        with pytest.raises(type(error)):
            await rig.ask("r1")
    with pytest.raises(
        BackendRefusedError, match=rf"^http://fake/v1: each of the first 10 calls of role 'r1' .*{error}"
    ):
        await rig.ask("r1")
