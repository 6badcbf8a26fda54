"""The service model against times computed by hand, and its invariants under random load."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve.core.model import OverloadedError
from flowevolve.sim.profiles import PROFILES, APIProfile, BatchingProfile, OutputLength
from flowevolve.sim.service_model import APIService, BatchingService, Served, count_tokens, make_service
from tests.support.depth import examples

NO_THINKING = OutputLength(0.0, 0.0, 10_000)
STEP, EACH = 0.01, 0.001


def batching(*, seqs: int = 8, prefill: float = 0.0, blocks: int = 0) -> BatchingService:
    return BatchingService(BatchingProfile(NO_THINKING, STEP, EACH, prefill, seqs, blocks))


def run(*jobs: Callable[[], Awaitable[Served]]) -> list[Served]:
    results: dict[int, Served] = {}

    async def one(index: int) -> None:
        results[index] = await jobs[index]()

    async def go() -> None:
        async with anyio.create_task_group() as tasks:
            for index in range(len(jobs)):
                tasks.start_soon(one, index)

    clock.run(go, clock="virtual")
    return [results[index] for index in range(len(jobs))]


async def request(
    service: BatchingService | APIService, tokens: int, *, after: float = 0.0, priority: int = 0, prompt: str = "p"
) -> Served:
    await anyio.sleep(after)
    return await service.serve(prompt, tokens, priority, random.Random(0))


def test_one_request_takes_its_steps() -> None:
    (served,) = run(partial(request, batching(), 100))
    assert served.latency_seconds == pytest.approx(100 * (STEP + EACH))


def test_two_requests_share_the_batch() -> None:
    service = batching()
    first, second = run(partial(request, service, 100), partial(request, service, 50, after=0.11))
    # 10 steps alone, then 50 shared, then the first alone for its last 40
    assert second.latency_seconds == pytest.approx(50 * (STEP + 2 * EACH))
    assert first.latency_seconds == pytest.approx(0.11 + 50 * (STEP + 2 * EACH) + 40 * (STEP + EACH))


def test_prefill_stalls_everybody_and_the_cache_spares_it() -> None:
    prompt = "x" * 640  # 160 tokens, 10 blocks
    service = batching(prefill=0.001, blocks=100)
    first, second = run(
        partial(request, service, 10, prompt=prompt), partial(request, service, 10, after=10, prompt=prompt)
    )
    assert first.latency_seconds == pytest.approx(160 * 0.001 + 10 * (STEP + EACH))
    assert second.cached_tokens == 159  # the last token is always computed
    assert second.latency_seconds == pytest.approx(0.001 + 10 * (STEP + EACH))


def test_a_step_takes_what_was_measured_with_so_many_requests() -> None:
    profile = BatchingProfile(NO_THINKING, ((1, 0.01), (4, 0.04), (8, 0.05)), 0.002, 0.0, 64, 0)
    assert [profile.seconds_of_step(running) for running in (0, 1, 2, 4, 6, 8, 10)] == pytest.approx(
        [0.01, 0.01, 0.02, 0.04, 0.045, 0.05, 0.054]
    )


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_steps_take_longer_as_contexts_grow(lengths: list[int]) -> None:
    """Of requests that begin together: against steps cut into ten parts each, added up one by one."""
    growth, parts = 0.0007, 10
    service = BatchingService(BatchingProfile(NO_THINKING, STEP, EACH, 0.0, 8, 0, growth))
    served = run(*(partial(request, service, tokens, prompt="p" * 40) for tokens in lengths))
    seconds, ends = 0.0, {}
    for part in range(max(lengths) * parts):
        step = (part + 0.5) / parts
        running = [tokens for tokens in lengths if tokens > step]
        seconds += (STEP + EACH * len(running) + growth * len(running) * (10 + step)) / parts
        ends[part + 1] = seconds
    expected = [ends[tokens * parts] for tokens in lengths]
    assert [each.latency_seconds for each in served] == pytest.approx(expected)


def test_a_full_batch_makes_others_wait_by_priority_then_arrival() -> None:
    service = batching(seqs=1)
    one = 10 * (STEP + EACH)
    _, late, urgent = run(
        partial(request, service, 10),
        partial(request, service, 10, after=0.01, priority=5),
        partial(request, service, 10, after=0.02, priority=1),
    )
    assert urgent.queue_seconds == pytest.approx(one - 0.02)
    assert late.queue_seconds == pytest.approx(2 * one - 0.01)


@pytest.mark.parametrize("gives_up_after", [0.05, 0.25])
def test_a_cancelled_request_frees_its_place_at_once(gives_up_after: float) -> None:
    """After 0.05 s the first request is cancelled while it runs; within 0.25 s it ends, and the second one follows it."""
    service = batching(seqs=1)

    async def give_up() -> Served:
        with anyio.move_on_after(gives_up_after):
            return await request(service, 10)
        return Served(0, 0, 0)

    _, second = run(give_up, partial(request, service, 10, after=0.01))
    began = min(gives_up_after, 10 * (STEP + EACH))
    assert second.queue_seconds == pytest.approx(began - 0.01)
    assert service.stats.running == service.stats.waiting == 0


def test_saturated_throughput_is_the_batch_over_the_step() -> None:
    service = batching(seqs=4)
    served = run(*[partial(request, service, 100) for _ in range(40)])
    assert max(each.latency_seconds for each in served) == pytest.approx(10 * 100 * (STEP + 4 * EACH))
    assert service.stats.output_tokens == 4000


@examples(50)
@given(
    st.lists(st.tuples(st.floats(0, 2), st.integers(1, 200), st.one_of(st.none(), st.floats(0.01, 3))), max_size=25),
    st.integers(1, 4),
)
def test_all_are_served_or_gone_and_none_faster_than_alone(
    load: list[tuple[float, int, float | None]], seqs: int
) -> None:
    service = batching(seqs=seqs)
    peaks: list[int] = []

    async def one(after: float, tokens: int, patience: float | None) -> Served:
        with anyio.move_on_after(after + patience if patience is not None else float("inf")):
            served = await request(service, tokens, after=after)
            peaks.append(service.stats.running)
            assert served.latency_seconds >= tokens * (STEP + EACH) * (1 - 1e-9)
            return served
        return Served(-1, -1, 0)

    first = run(*[partial(one, *each) for each in load])
    assert all(peak <= seqs for peak in peaks)
    assert service.stats.running == service.stats.waiting == 0
    assert service.stats.finished == sum(each.latency_seconds >= 0 for each in first)


def test_a_rate_limit_says_when_to_come_back() -> None:
    profile = APIProfile(NO_THINKING, 0.5, 0.0, 0.01, 60.0, float("inf"))
    service = APIService(profile)
    refused: list[float] = []

    async def one_too_many() -> Served:
        async with anyio.create_task_group() as tasks:
            for _ in range(60):
                tasks.start_soon(partial(service.serve, "p", 0, 0, random.Random(0)))
            await anyio.lowlevel.checkpoint()
            try:
                await service.serve("p", 0, 0, random.Random(0))
            except OverloadedError as error:
                refused.append(error.retry_after or 0.0)
            await anyio.sleep(refused[0])
        return await service.serve("p", 100, 0, random.Random(0))

    (served,) = run(one_too_many)
    assert refused == [pytest.approx(1.0)]
    assert served.latency_seconds == pytest.approx(0.5 + 100 * 0.01)


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_serves(name: str) -> None:
    service = make_service(PROFILES[name])

    async def go() -> Served:
        return await service.serve("hello there", 50, 0, random.Random(1))

    (served,) = run(go)
    assert served.latency_seconds >= 0
    assert service.stats.finished == 1


@given(st.text(max_size=500))
def test_tokens_are_counted_up(text: str) -> None:
    assert max(1, len(text) / 4) <= count_tokens(text) <= max(1, len(text) / 4 + 1)
