"""Endpoints behind a router that refuse requests because they have too many. On the virtual clock."""

from dataclasses import replace
from functools import partial

import anyio
import pytest

from flowevolve.core.calls import CallScope
from flowevolve.core.model import OverloadedError
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from tests.support.several_endpoints import Fake, Rig, about

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(jumping_clock):
    return ("asyncio", jumping_clock)


REFUSED = OverloadedError("429", status=429)


async def seconds_for(rig, count) -> float:
    """Seconds that so many calls take with 32 of them in flight, none of which may fail."""
    client = LLMClient({"r": Model(rig.router, "m")}, Scheduler(32), RetryPolicy(), 1, lambda record: None)
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for index in range(count):
            scope = CallScope("evaluate", f"{index}", None, 0, 0)
            tasks.start_soon(partial(client.chat, "r", about("x", long=False).messages, scope=scope))
    assert client.account.totals().failed == 0
    return anyio.current_time() - began


async def test_an_endpoint_that_refuses_everything_slows_nobody_down() -> None:
    rig = Rig(count=3)
    rig.fakes[2].trouble = REFUSED
    assert await seconds_for(rig, 640) <= 21
    first, second, third = rig.router.stats()
    assert first.requests + second.requests == 640
    assert third.requests == third.refusals < 40
    assert (third.failures, third.ejections) == (0, 0)


class Limited(Fake):
    """Refuses what is above so many requests a second."""

    def __init__(self, per_second, retry_after=None, takes=1.3) -> None:
        super().__init__(takes)
        self.per_second = self.level = per_second
        self.retry_after = retry_after
        self.updated = 0.0
        self.answered = 0

    async def chat(self, request, *, timeout):
        now = anyio.current_time()
        self.level = min(self.per_second, self.level + (now - self.updated) * self.per_second)
        self.updated = now
        if self.level < 1:
            await anyio.lowlevel.checkpoint()
            raise OverloadedError("429", status=429, retry_after=self.retry_after)
        self.level -= 1
        self.answered += 1
        return await super().chat(request, timeout=timeout)


@pytest.mark.parametrize("retry_after", [None, 1.0, 3600.0])
async def test_a_slow_endpoint_takes_what_it_can_and_slows_nobody_down(retry_after) -> None:
    alone = await seconds_for(Rig(count=2, takes=1.3), 1000)
    slow = Limited(3, retry_after)
    rig = Rig(fakes=[Fake(1.3), Fake(1.3), slow])
    assert await seconds_for(rig, 1000) <= 1.05 * alone
    assert slow.answered >= (3 if retry_after == 3600.0 else 30)
    assert rig.router.stats()[2].refusals <= 50


async def test_where_all_refuse_they_are_asked_as_fast_as_they_bear_together() -> None:
    rig = Rig(fakes=[Limited(5) for _ in range(3)])
    assert await seconds_for(rig, 1500) < 1.5 * 1500 / 15
    assert sum(endpoint.refusals for endpoint in rig.router.stats()) < 0.15 * 1500


async def test_a_refused_request_goes_to_another_endpoint_at_once_but_never_back() -> None:
    rig = Rig(count=3, takes=0.0)
    rig.fakes[0].trouble = rig.fakes[1].trouble = REFUSED
    for text in "abcdefgh":
        await rig.send(text)
    assert anyio.current_time() == 0
    assert rig.counts()[2] == 8
    rig.fakes[2].trouble = REFUSED
    before = sum(rig.counts())
    with pytest.raises(OverloadedError):
        await rig.send()
    assert sum(rig.counts()) == before + 1  # the other two rest


async def test_a_refusal_by_all_asks_to_wait_for_the_first_that_may_be_asked() -> None:
    rig = Rig(count=2)
    for fake, seconds in zip(rig.fakes, (60.0, 5.0), strict=True):
        fake.trouble = OverloadedError("429", status=429, retry_after=seconds, headers={"x": "y"})
    with pytest.raises(OverloadedError) as caught:
        await rig.send()
    assert (caught.value.status, caught.value.retry_after, caught.value.headers) == (429, 5.0, None)
    rig.fakes[1].trouble = None
    await anyio.sleep(5)
    for text in "abcdefgh":
        await rig.send(text)
    assert len(rig.fakes[0].calls) == 1


async def test_limits_that_an_endpoint_tells_are_its_own() -> None:
    class Telling(Fake):
        async def chat(self, request, *, timeout):
            reply = await super().chat(request, timeout=timeout)
            told = {"limit": "60", "remaining": str(max(0, 60 - len(self.calls))), "reset": "60s"}
            return replace(reply, headers={f"x-ratelimit-{name}-requests": said for name, said in told.items()})

    rig = Rig(fakes=[Fake(), Telling()])
    assert await seconds_for(rig, 640) < 40  # the first one alone needs 20 s
    assert 30 < len(rig.fakes[1].calls) < 110


async def test_refusals_of_one_model_are_no_matter_of_others() -> None:
    rig = Rig(count=2, takes=0.0)
    rig.fakes[0].trouble = REFUSED
    await rig.router.chat(replace(about("x", long=False), model="other"), timeout=9)
    rig.fakes[0].trouble = None
    await rig.router.chat(about("x", long=False), timeout=9)
    assert rig.counts() == [2, 1]


async def test_a_storm_of_one_endpoint_is_told_with_its_address() -> None:
    rig = Rig(count=2, takes=0.0)
    rig.fakes[0].trouble = OverloadedError("429", status=429, retry_after=5.0)
    await rig.router.chat(about("x", long=False), timeout=9)
    expected = {"backend": "http://a/v1", "model": "m", "pause_seconds": 5.0, "requests_per_minute": 60.0}
    assert rig.events == [("limits.refused", expected)]
