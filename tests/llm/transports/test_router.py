"""Several endpoints as one: where requests go, and what happens when endpoints come and go. On the virtual clock."""

from collections import Counter
from dataclasses import replace
from functools import partial
from math import ceil

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError, InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.calls import CallScope
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    LLMError,
    Message,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    Transport,
    UnreachableError,
)
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.client.role import Role
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.router import EJECT_AFTER, SLACK, Router, make_router
from tests.support.depth import examples

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(jumping_clock):
    return ("asyncio", jumping_clock)


def about(text, long=True):
    return ChatRequest("m", (Message("system", text * (300 if long else 1)), Message("user", "hello")))


class Fake:
    """An endpoint that answers after ``takes`` seconds, or raises ``trouble`` at once."""

    def __init__(self, takes=1.0, models=("m",)) -> None:
        self.takes = takes
        self.served = models
        self.trouble: LLMError | None = None
        self.calls: list[float] = []
        self.checks: list[float] = []
        self.open = 0
        self.seems_well = False
        """Whether it passes health checks in spite of its trouble."""
        self.hangs = False
        """Whether its health checks are never answered."""
        self.lists = True

    async def chat(self, request, *, timeout):
        self.calls.append(anyio.current_time())
        self.open += 1
        try:
            if (trouble := self.trouble) is not None:
                await anyio.lowlevel.checkpoint()
                raise trouble
            await anyio.sleep(self.takes)
        finally:
            self.open -= 1
        return ChatReply("fine", model=request.model)

    async def models(self):
        self.checks.append(anyio.current_time())
        await (anyio.sleep_forever() if self.hangs else anyio.lowlevel.checkpoint())
        if self.trouble is not None and not self.seems_well:
            raise self.trouble
        if not self.lists:
            raise RefusedError("HTTP 404: Not Found", status=404)
        return self.served

    async def aclose(self) -> None:
        self.trouble = UnreachableError("closed")


class Rig:
    def __init__(self, count=3, takes=1.0, patience=60.0, fakes=(), must_have_list=True) -> None:
        self.fakes = list(fakes) or [Fake(takes) for _ in range(count)]
        self.events: list[tuple[str, dict[str, JSON]]] = []
        self.router = Router(
            {f"http://{name}/v1": fake for name, fake in zip("abcdef", self.fakes, strict=False)},
            log=lambda body: self.events.append((body.kind, body.to_json())),
        )
        retry = RetryPolicy(jitter=0, patience_seconds=patience)
        role = Role(self.router, "m", must_have_list=must_have_list)
        self.client = LLMClient({"r": role}, Scheduler(1000), retry, 1, lambda record: None)

    @property
    def told(self) -> list[tuple[str, JSON]]:
        return [(kind, data.get("endpoint")) for kind, data in self.events]

    async def ask(self, index=0, text="x"):
        scope = CallScope("evaluate", f"{index}", None, 0, 0)
        return await self.client.chat("r", about(text).messages, scope=scope)

    async def send(self, text="x"):
        return await self.router.chat(about(text), timeout=600)

    async def fail_until_ejected(self):
        for _ in range(EJECT_AFTER):
            with pytest.raises(UnreachableError):
                await self.send()

    def counts(self):
        return [len(fake.calls) for fake in self.fakes]


DOWN = UnreachableError("connection refused")


def test_the_router_is_a_transport() -> None:
    assert isinstance(Router({"a": Fake()}), Transport)


# Making one


def test_one_endpoint_needs_no_router() -> None:
    assert type(make_router(["http://a/v1"], lambda url: Fake())) is Fake
    router = make_router(["http://a/v1", "http://b/v1"], lambda url: Fake())
    assert isinstance(router, Router)
    assert (router.urls, router.base_url) == (("http://a/v1", "http://b/v1"), "http://a/v1, http://b/v1")
    assert router.identity == "http://a/v1"


def test_one_that_may_move_has_a_router() -> None:
    assert isinstance(make_router(["http://a/v1"], lambda url: Fake(), may_move=True), Router)


# One that moves


async def test_requests_follow_a_server_that_is_back_elsewhere() -> None:
    made = {}

    def make(url):
        made[url] = Fake()
        return made[url]

    router = make_router(["http://a/v1", "http://b/v1"], make)
    assert isinstance(router, Router)
    made["http://a/v1"].trouble = made["http://b/v1"].trouble = DOWN
    for _ in range(2 * EJECT_AFTER):
        with pytest.raises(UnreachableError):
            await router.chat(about("x"), timeout=600)
    router.move("http://elsewhere/v1", "http://nowhere/v1")  # of somebody else
    router.move("http://a/v1", "http://c/v1")
    assert (await router.chat(about("x"), timeout=600)).text == "fine"
    assert router.urls == ("http://c/v1", "http://b/v1")
    figures = [(each.url, each.requests, each.failures, each.ejected) for each in router.stats()]
    assert figures == [
        ("http://c/v1", 1, 0, False),
        ("http://b/v1", EJECT_AFTER, EJECT_AFTER, True),
        ("http://a/v1", EJECT_AFTER, EJECT_AFTER, True),
    ]
    await router.aclose()
    assert all(str(fake.trouble) == "closed" for fake in made.values())


async def test_what_is_in_flight_as_a_server_moves_ends_where_it_began() -> None:
    made = {}

    def make(url):
        made[url] = Fake()
        return made[url]

    router = make_router(["http://a/v1"], make, may_move=True)
    assert isinstance(router, Router)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(router.chat, about("x"), timeout=600))
        await anyio.wait_all_tasks_blocked()
        router.move("http://a/v1", "http://b/v1")
        await router.chat(about("x"), timeout=600)
    assert [(each.url, each.requests, each.in_flight) for each in router.stats()] == [
        ("http://b/v1", 1, 0),
        ("http://a/v1", 1, 0),
    ]


@pytest.mark.parametrize(("urls", "said"), [([], "empty"), (["http://a/v1", "http://a/v1/"], "twice")])
def test_lists_that_make_no_sense_are_refused(urls, said) -> None:
    with pytest.raises(InputError, match=said):
        make_router(urls, lambda url: Fake())


# Where requests go


async def test_requests_with_the_same_long_first_message_go_to_the_same_endpoint() -> None:
    rig = Rig()
    for text in "abcdefghij" * 5:
        await rig.send(text)
    assert sum(rig.counts()) == 50
    assert all(count % 5 == 0 for count in rig.counts())
    assert sorted(rig.counts())[1] > 0  # and not all to one


async def test_without_a_long_prefix_the_least_loaded_is_taken() -> None:
    rig = Rig()
    async with anyio.create_task_group() as tasks:
        for _ in range(30):
            tasks.start_soon(partial(rig.router.chat, about("x", long=False), timeout=9))
    assert rig.counts() == [10, 10, 10]


async def test_one_prefix_does_not_flood_its_endpoint() -> None:
    rig = Rig()
    async with anyio.create_task_group() as tasks:
        for _ in range(90):
            tasks.start_soon(rig.send)
    assert max(rig.counts()) == ceil(1.25 * 90 / 3)


async def test_when_one_is_gone_the_others_keep_their_prefixes() -> None:
    rig = Rig()

    async def where(text):
        before = rig.counts()
        await rig.send(text)
        return next(index for index, count in enumerate(rig.counts()) if count > before[index])

    texts = [f"text {number} " for number in range(20)]
    homes = [await where(text) for text in texts]
    rig.fakes[0].trouble = DOWN
    with pytest.raises(UnreachableError):
        await rig.send(texts[homes.index(0)])
    later = [await where(text) for text in texts]
    assert [now for now, home in zip(later, homes, strict=True) if home] == [home for home in homes if home]
    assert 0 not in later


async def test_a_request_in_flight_twice_is_at_two_endpoints() -> None:
    rig = Rig(count=2)
    request = about("x")
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(partial(rig.router.chat, request, timeout=9))
    assert rig.counts() == [1, 1]


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.integers(0, 8), st.integers(1, 12)), max_size=60),
)
def test_no_endpoint_gets_more_than_its_bounded_share(jumping_clock, count, arrivals) -> None:
    async def main() -> None:
        rig = Rig(count)

        async def one(text, long, seconds) -> None:
            endpoint = min(rig.fakes, key=lambda fake: len(fake.calls))
            endpoint.takes = float(seconds)
            await rig.router.chat(about(text, long), timeout=99)

        async with anyio.create_task_group() as tasks:
            for text, long, gap, seconds in arrivals:
                await anyio.sleep(gap / 4)
                before = [fake.open for fake in rig.fakes]
                tasks.start_soon(one, text, long, seconds)
                await anyio.wait_all_tasks_blocked()
                bound = ceil((1 + SLACK) * (sum(before) + 1) / count)
                for fake, was in zip(rig.fakes, before, strict=True):
                    assert fake.open <= max(was, bound)
        assert [endpoint.in_flight for endpoint in rig.router.stats()] == [0] * count
        assert sum(endpoint.requests for endpoint in rig.router.stats()) == len(arrivals)

    anyio.run(main, backend_options=jumping_clock)


@given(st.integers(2, 5), st.lists(st.sampled_from("abcdefgh"), max_size=40))
def test_where_loads_are_even_a_prefix_stays_where_it_is(jumping_clock, count, texts) -> None:
    async def main() -> None:
        rig = Rig(count, takes=0.1)
        homes: dict[str, int] = {}
        for text in texts:
            before = rig.counts()
            await rig.send(text)
            [home] = [index for index, calls in enumerate(rig.counts()) if calls > before[index]]
            assert homes.setdefault(text, home) == home

    anyio.run(main, backend_options=jumping_clock)


# Ejection


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
            """Requests that went to an ejected endpoint are one for each check it passed, at most."""
            ejected_at: dict[int, tuple[int, int]] = {}
            while True:
                for index, (fake, stats) in enumerate(zip(rig.fakes, rig.router.stats(), strict=True)):
                    if not stats.ejected:
                        ejected_at.pop(index, None)
                        continue
                    calls, checks = ejected_at.setdefault(index, (len(fake.calls), len(fake.checks)))
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


# Endpoints that refuse


REFUSED = OverloadedError("429", status=429)


async def seconds_for(rig, count) -> float:
    """Seconds that so many calls take with 32 of them in flight, none of which may fail."""
    client = LLMClient({"r": Role(rig.router, "m")}, Scheduler(32), RetryPolicy(), 1, lambda record: None)
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
    rig = Rig(fakes=[Fake(1.3), Fake(1.3), Limited(3, retry_after)])
    assert await seconds_for(rig, 1000) <= 1.05 * alone
    slow = rig.fakes[2]
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


# Before a run


async def test_an_endpoint_that_is_not_there_yet_is_ejected_at_the_check() -> None:
    rig = Rig(count=2)
    rig.fakes[0].trouble = DOWN
    await rig.client.check()
    assert rig.told == [("endpoint.ejected", "http://a/v1")]


async def test_the_check_fails_when_none_is_there() -> None:
    rig = Rig(count=2)
    for fake in rig.fakes:
        fake.trouble = DOWN
    with pytest.raises(BackendUnreachableError, match=r"http://a/v1: connection refused; http://b/v1: conn"):
        await rig.client.check()


async def test_the_check_fails_when_one_lacks_the_model_or_the_key() -> None:
    rig = Rig(count=2)
    rig.fakes[1].served = ("other",)
    with pytest.raises(BackendRefusedError, match="'m'"):
        await rig.client.check()
    rig.fakes[1].trouble = RefusedError("HTTP 401", status=401)
    with pytest.raises(BackendRefusedError, match="http://b/v1: HTTP 401"):
        await rig.client.check()


async def test_one_without_a_list_of_models_beside_others_that_have_one_is_at_a_wrong_address() -> None:
    rig = Rig(count=3)
    rig.fakes[1].lists = False
    with pytest.raises(BackendRefusedError, match=r": http://b/v1: HTTP 404: Not Found; .*that address must be wrong$"):
        await rig.client.check()


async def test_where_none_has_a_list_of_models_the_first_call_tells() -> None:
    rig = Rig(count=2, must_have_list=False)
    for fake in rig.fakes:
        fake.lists = False
    notes: list[str] = []
    await rig.client.check(notes.append)
    assert [note.partition(" has no list of models")[0] for note in notes] == ["http://a/v1, http://b/v1"]
    for fake in rig.fakes:
        fake.trouble = RefusedError("HTTP 404: Not Found", status=404)
    with pytest.raises(BackendRefusedError, match=r"'m' .* is refused: http://[ab]/v1: HTTP 404: Not Found\. Check"):
        await rig.ask()


async def test_closing_closes_all() -> None:
    rig = Rig()
    await rig.router.aclose()
    assert all(str(fake.trouble) == "closed" for fake in rig.fakes)
