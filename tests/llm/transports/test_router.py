"""Several endpoints as one: how they are put together, where requests go, and the check before a run."""

from functools import partial
from math import ceil

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError, InputError
from flowevolve.core.model import RefusedError, Transport, UnreachableError
from flowevolve.llm.transports.router import EJECT_AFTER, SLACK, Router, make_router
from tests.support.several_endpoints import DOWN, Fake, Rig, about

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(jumping_clock):
    return ("asyncio", jumping_clock)


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
            await rig.router.chat(about(text, long=long), timeout=99)

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
    with pytest.raises(BackendRefusedError, match=r"model 'm' is refused: http://[ab]/v1: HTTP 404: Not Found\. Check"):
        await rig.ask()


async def test_closing_closes_all() -> None:
    rig = Rig()
    await rig.router.aclose()
    assert all(str(fake.trouble) == "closed" for fake in rig.fakes)
