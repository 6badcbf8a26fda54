"""Endpoints behind a router that fail: they are ejected, checked, tried, and taken back. On the virtual clock."""

from collections import Counter

import anyio
import pytest
from hypothesis import example, given, strategies as st

from flowevolve._util.errors import BackendUnreachableError
from flowevolve.core.model import OverloadedError, RejectedError, ServerError, UnreachableError
from flowevolve.llm.transports.router import EJECT_AFTER
from tests.support.depth import examples
from tests.support.several_endpoints import DOWN, Rig

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(jumping_clock):
    return ("asyncio", jumping_clock)


async def test_an_endpoint_that_fails_is_ejected_checked_tried_and_back() -> None:
    rig = Rig(count=2, takes=0.25)
    bad, _ = rig.fakes
    bad.trouble = DOWN

    async def recover() -> None:
        await anyio.sleep(20)
        bad.trouble = None

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(recover)
        for index in range(400):
            tasks.start_soon(rig.ask, index)
            await anyio.sleep(0.1)
    assert rig.told == [("endpoint.ejected", "http://a/v1"), ("endpoint.returned", "http://a/v1")]
    while_down = [at for at in bad.calls if at < 20]
    assert len(while_down) == EJECT_AFTER
    waits = [later - earlier for earlier, later in zip(bad.checks, bad.checks[1:], strict=False)]
    assert waits == pytest.approx([2, 4, 8, 10], abs=0.4)
    assert len(bad.calls) > 10
    [first, second] = rig.router.stats()
    assert (first.failures, first.ejections, first.ejected) == (EJECT_AFTER, 1, False)
    assert (second.failures, second.in_flight) == (0, 0)
    assert first.requests + second.requests == 400 + EJECT_AFTER
    assert rig.client.account.totals().failed == 0


async def test_only_one_request_is_on_trial_and_the_others_wait_for_it() -> None:
    rig = Rig(count=1, takes=0.0)
    rig.fakes[0].trouble = DOWN
    await rig.fail_until_ejected()
    rig.fakes[0].trouble, rig.fakes[0].takes = None, 5.0
    rig.fakes[0].calls.clear()
    await anyio.sleep(1)
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(rig.send)
        await anyio.sleep(1)
        assert len(rig.fakes[0].calls) == 1
    assert rig.fakes[0].calls == [1, 6, 6, 6]


async def test_a_trial_that_fails_is_another_wait_and_one_that_is_cancelled_is_none() -> None:
    rig = Rig(count=1)
    fake = rig.fakes[0]
    fake.trouble = DOWN
    await rig.fail_until_ejected()

    fake.seems_well = True
    await anyio.sleep(1)
    with pytest.raises(UnreachableError):
        await rig.send()
    with pytest.raises(UnreachableError, match="no endpoint is up"):
        await rig.send()  # no check is due for 2 seconds
    await anyio.sleep(2)
    fake.trouble, fake.takes = None, 10.0
    with anyio.move_on_after(1):
        await rig.send()
    fake.takes = 0.5
    await rig.send()
    assert fake.checks == [1, 3, 4]
    assert not rig.router.stats()[0].ejected


async def test_a_hanging_health_check_holds_up_nobody_else() -> None:
    rig = Rig(count=2, takes=0.1)
    bad = rig.fakes[0]
    bad.trouble = DOWN
    for index in range(EJECT_AFTER):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(rig.ask, index)
    assert rig.told == [("endpoint.ejected", "http://a/v1")]
    bad.hangs = True
    await anyio.sleep(40)
    began, took = anyio.current_time(), []

    async def one() -> None:
        await rig.ask()
        took.append(anyio.current_time() - began)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(one)
    assert took == pytest.approx([0.1, 0.1, 10.1])


async def test_an_endpoint_without_a_list_of_models_comes_back_too() -> None:
    rig = Rig(count=1)
    fake = rig.fakes[0]
    fake.trouble = DOWN
    await rig.fail_until_ejected()
    fake.trouble, fake.lists = None, False
    await anyio.sleep(1)
    await rig.send()
    assert not rig.router.stats()[0].ejected


async def test_an_endpoint_that_had_a_list_of_models_is_not_back_without_it() -> None:
    """A gateway may say 404 for a server behind it that is not there."""
    rig = Rig(count=2, takes=0.1)
    bad = rig.fakes[0]
    await rig.client.check()
    bad.trouble = DOWN
    for index in range(EJECT_AFTER):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(rig.ask, index)
    bad.lists, bad.trouble = False, None
    calls = len(bad.calls)
    for _ in range(20):
        await anyio.sleep(1)
        await rig.send()
    assert len(bad.calls) == calls
    assert rig.router.stats()[0].ejected


@pytest.mark.parametrize("error", [OverloadedError("429", status=429), RejectedError("too long", status=400)])
async def test_an_endpoint_that_turns_requests_down_is_alive(error) -> None:
    rig = Rig(count=1)
    rig.fakes[0].trouble = error
    for _ in range(2 * EJECT_AFTER):
        with pytest.raises(type(error)):
            await rig.send()
    assert not any(kind.startswith("endpoint.") for kind, _ in rig.told)
    assert rig.router.stats()[0].failures == 0


@pytest.mark.parametrize("error", [ServerError("500", status=500), OverloadedError("503", status=503)])
async def test_5xx_counts_as_failure(error) -> None:
    rig = Rig(count=1)
    rig.fakes[0].trouble = error
    for _ in range(EJECT_AFTER):
        with pytest.raises(type(error)):
            await rig.send()
    assert rig.told == [("endpoint.ejected", "http://a/v1")]


async def test_all_down_is_like_one_down() -> None:
    rig = Rig(count=3)
    for fake in rig.fakes:
        fake.trouble = DOWN
    with pytest.raises(BackendUnreachableError, match=r"http://a/v1.*http://b/v1.*http://c/v1.*refused.*patience"):
        await rig.ask()
    assert 60 <= anyio.current_time() < 120


async def test_all_down_and_back_loses_nothing() -> None:
    rig = Rig(count=2, takes=3.0)

    async def outage() -> None:
        await anyio.sleep(1)
        for fake in rig.fakes:
            fake.trouble = DOWN
        await anyio.sleep(40)
        for fake in rig.fakes:
            fake.trouble = None

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outage)
        for index in range(200):
            tasks.start_soon(rig.ask, index)
            await anyio.sleep(0.2)
    totals = rig.client.account.totals()
    assert (totals.requests, totals.failed) == (200, 0)


@examples(40)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(0, 40), st.floats(0.1, 30)), max_size=8),
    st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 2)), min_size=1, max_size=60),
)
@example(  # the first is back for half a second, and then ejected again at once
    [(0, 0.0, 8.0), (0, 11.5, 1.0), (1, 0.0, 12.0), (2, 0.0, 12.0)],
    [("a", 1.0), ("a", 2.0), ("a", 1.375), ("a", 0.0), ("a", 0.0), ("a", 0.0)],
)
def test_whatever_comes_and_goes_nothing_is_lost_and_ejected_ones_get_only_probes(
    jumping_clock, outages, arrivals
) -> None:
    async def main() -> None:
        rig = Rig(count=3, takes=0.5, patience=1e6)
        down: Counter[int] = Counter()

        async def outage(which, start, seconds) -> None:
            await anyio.sleep(start)
            down[which] += 1
            rig.fakes[which].trouble = DOWN
            await anyio.sleep(seconds)
            down[which] -= 1
            if not down[which]:
                rig.fakes[which].trouble = None

        async def watch() -> None:
            """Requests that went to an ejected endpoint are one for each check it passed since then, at most."""
            ejected_at: dict[tuple[str, int], tuple[int, int]] = {}
            while True:
                for fake, stats in zip(rig.fakes, rig.router.stats(), strict=True):
                    if stats.ejected:
                        times = rig.told.count(("endpoint.ejected", stats.url))
                        now = len(fake.calls), len(fake.checks)
                        calls, checks = ejected_at.setdefault((stats.url, times), now)
                        assert len(fake.calls) - calls <= len(fake.checks) - checks
                await anyio.sleep(0.05)

        async with anyio.create_task_group() as watching:
            watching.start_soon(watch)
            async with anyio.create_task_group() as tasks:
                for each in outages:
                    tasks.start_soon(outage, *each)
                for index, (text, gap) in enumerate(arrivals):
                    await anyio.sleep(gap)
                    tasks.start_soon(rig.ask, index, text)
            watching.cancel_scope.cancel()
        totals = rig.client.account.totals()
        assert (totals.requests, totals.failed) == (len(arrivals), 0)
        assert [endpoint.in_flight for endpoint in rig.router.stats()] == [0, 0, 0]

    anyio.run(main, backend_options=jumping_clock)


async def test_the_same_run_goes_the_same_way() -> None:
    async def calls():
        began, rig = anyio.current_time(), Rig(takes=0.7)
        rig.fakes[1].trouble = DOWN
        async with anyio.create_task_group() as tasks:
            for index in range(100):
                tasks.start_soon(rig.ask, index, "abc"[index % 3])
                await anyio.sleep(0.05)
        return [[round(at - began, 6) for at in fake.calls] for fake in rig.fakes]

    assert await calls() == await calls()
