"""Admission policies: their rules one by one, and what they reach with a simulated server on the virtual clock."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.llm.scheduling.admission import Admission, LoadSample, NullProbe, ServerLoad, run_admission_control
from flowevolve.llm.scheduling.request_queue import QueuedRequest
from flowevolve.llm.scheduling.response_times import ResponseTimes
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.policies.admission import Fixed, Latency, ServerQueue
from flowevolve.policies.ordering import LaterFirst
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.service_model import Service, make_service
from tests.support.depth import LONG

PROFILE = "qwen3-8b-h100"
BATCH = 256
MOST = 1024


def load(limit: int, running: int, waiting: int, *, at_gate: int = 100, refused: int = 0) -> LoadSample:
    return LoadSample(0.0, limit, MOST, running + waiting, at_gate, ServerLoad(running, waiting), refused=refused)


def test_fixed_is_the_most_allowed() -> None:
    assert Fixed().first(64) == 64
    assert Fixed().decide(load(10, 10, 0)).limit == MOST


def test_the_limit_grows_fast_while_the_servers_queue_is_empty() -> None:
    assert ServerQueue().first(MOST) == 16
    assert ServerQueue().first(8) == 8
    assert ServerQueue().decide(load(100, 100, 0)).limit == 150
    assert ServerQueue().decide(load(900, 900, 0)).limit == MOST


def test_the_limit_stays_when_nobody_waits_for_it() -> None:
    assert ServerQueue().decide(load(100, 100, 0, at_gate=0)).limit == 100
    assert ServerQueue().decide(load(100, 60, 0)).limit == 100


def test_a_long_queue_is_taken_off_at_once_and_only_once() -> None:
    policy = ServerQueue(target=0.1)
    assert policy.decide(load(500, 200, 300)).limit == 220
    assert policy.decide(load(220, 200, 250)).limit == 220
    assert policy.decide(load(220, 200, 20)).limit == 220


def test_once_a_queue_was_seen_the_limit_grows_by_what_the_queue_lacks() -> None:
    policy = ServerQueue(target=0.1)
    policy.decide(load(500, 200, 300))
    assert policy.decide(load(220, 210, 10)).limit == 220 + 11
    assert policy.decide(load(231, 231, 0)).limit == 231 + 23


def test_of_a_queue_that_others_have_part_in_our_share_is_taken_off() -> None:
    crowded = LoadSample(0.0, 100, MOST, 100, 50, ServerLoad(running=200, waiting=60))
    assert ServerQueue(target=0.1).decide(crowded).limit == 100 - round(40 * 100 / 260)


def at_one_server(policies: Sequence[ServerQueue], looks: int, others: Sequence[int] = ()) -> list[list[int]]:
    """Limits look by look of runs that use up what they may at one server; one run begins every 60 looks.

    ``others`` are requests of somebody else there, by look; none after the last.
    """
    limits = [0 for _ in policies]
    seen: list[list[int]] = []
    for look in range(looks):
        for place, policy in enumerate(policies[: 1 + look // 60]):
            limits[place] = limits[place] or policy.first(MOST)
            total = sum(limits) + (others[look] if look < len(others) else 0)
            server = ServerLoad(min(BATCH, total), max(0, total - BATCH))
            limits[place] = policy.decide(LoadSample(0.0, limits[place], MOST, limits[place], 9, server)).limit
        seen.append(list(limits))
    return seen


def test_after_a_burst_of_others_the_limit_is_soon_back() -> None:
    seen = at_one_server([ServerQueue()], 100, [0] * 50 + [400])
    before, cut, *after = (limits[0] for limits in seen[49:])
    assert before == 271
    assert 0.35 * before < cut < 0.45 * before, "somebody else's part of the queue is not taken off ours"
    assert min(after[4:]) >= 0.9 * before


def test_bursts_of_others_cost_little() -> None:
    bursts = [400 if look % 60 == 50 else 0 for look in range(600)]
    limits = [seen[0] for seen in at_one_server([ServerQueue()], 600, bursts)]
    assert sum(limits[60:]) / len(limits[60:]) > 0.9 * 271


def test_two_runs_share_a_server() -> None:
    steady = at_one_server([ServerQueue(), ServerQueue()], 600)[300:]
    assert all(min(limits) > 0.35 * sum(limits) for limits in steady)
    assert all(BATCH <= sum(limits) <= 1.15 * BATCH for limits in steady)


@pytest.mark.parametrize("policy", [ServerQueue(), Latency()])
def test_a_refusal_cuts_the_limit(policy: Admission) -> None:
    assert policy.decide(load(100, 100, 0, refused=1)).limit == 70


def test_after_a_refusal_the_limit_grows_by_what_the_queue_lacks() -> None:
    policy = ServerQueue(target=0.1)
    policy.decide(load(100, 100, 0, refused=1))
    assert policy.decide(load(70, 70, 0)).limit == 70 + 7


def look_blind(limit: int, wait: float | None, latency: float = 5.0) -> LoadSample:
    """Enough calls were answered since the last one for the limit to be judged at the next."""
    return LoadSample(0.0, limit, MOST, limit, 9, None, 4 * limit, 0, latency, wait, 0.01)


def test_waiting_that_a_cut_does_not_shorten_is_no_queue() -> None:
    policy = Latency()
    limits = [100]
    for wait in (0.2, 0.2, 1.2, 1.2, 1.2, 1.2):
        limits.append(policy.decide(look_blind(limits[-1], wait)).limit)
    assert limits == [100, 100, 200, 200, 170, 170, 195], "cut by the surplus once, then grown by a step"


def test_waiting_that_a_cut_shortens_is_a_queue() -> None:
    policy = Latency()
    limits = [100]
    for wait in (0.2, 0.2, 2.2, 2.2, 0.9, 0.9):
        limits.append(policy.decide(look_blind(limits[-1], wait)).limit)
    assert limits == [100, 100, 200, 200, 130, 130, 118], "what is left of it is cut, too"


def test_waiting_that_can_not_be_told_is_not_held_against_the_limit() -> None:
    policy = Latency()
    assert [policy.decide(look_blind(100, None)).limit for _ in range(2)] == [100, 200]


def test_a_server_that_says_nothing_is_judged_by_its_answers() -> None:
    blind = LoadSample(0.0, 16, MOST, 16, 9, None, 20, 0, 5.0, 0.1, 0.01)
    policy = ServerQueue()
    assert [policy.decide(blind).limit for _ in range(2)] == [16, 32]


def test_answers_of_unknown_length_change_no_limit() -> None:
    policy = Latency()
    silent = LoadSample(0.0, 16, MOST, 16, 9, None, 20, 0, 5.0, 0.1, None)
    assert [policy.decide(silent).limit for _ in range(4)] == [16] * 4


def test_what_did_not_pay_is_taken_back_and_smaller_steps_follow() -> None:
    policy = Latency()
    limits = [100]
    for _ in range(8):
        seconds_per_token = 0.0001 * limits[-1]  # as many tokens per second whatever the limit is
        load = LoadSample(0.0, limits[-1], MOST, limits[-1], 9, None, 4 * limits[-1], 0, 5.0, None, seconds_per_token)
        limits.append(policy.decide(load).limit)
    assert limits == [100, 100, 200, 200, 100, 100, 87, 87, 76]


def test_a_limit_that_grows_in_steps_grows_by_one_at_least_and_falls_no_lower_than_the_least() -> None:
    policy = Latency(start=4)
    limits = [5]
    for pays in (True, True, False, False, True, True, True, True):
        load = LoadSample(0.0, limits[-1], MOST, limits[-1], 9, None, 40, 0, 5.0, None, 0.01 if pays else 10.0)
        limits.append(policy.decide(load).limit)
    assert limits == [5, 5, 10, 10, 5, 5, 4, 4, 5]


def test_after_a_refusal_a_limit_that_goes_by_latency_grows_in_small_steps() -> None:
    policy = Latency()
    limits = [100]
    for refused in (1, 0, 0):
        limits.append(policy.decide(replace(look_blind(limits[-1], None), refused=refused)).limit)
    assert limits == [100, 70, 70, round(70 * 1.15)]


@pytest.mark.parametrize("policy", [ServerQueue(start=1, least=1), Latency(start=1, least=1)])
def test_a_limit_of_one_grows_too(policy: Admission) -> None:
    limit = 1
    for _ in range(4):
        blind = replace(look_blind(limit, None), server=ServerLoad(limit, 0))
        limit = policy.decide(blind).limit
    assert limit > 2


def test_growth_is_by_more_than_one() -> None:
    with pytest.raises(InputError, match=r"scheduler\.admission\.growth"):
        ServerQueue(growth=1.0)


@pytest.mark.parametrize("settings", [{"least": 0}, {"least": 20}, {"target": 0.0}])
@pytest.mark.parametrize("policy", [ServerQueue, Latency])
def test_settings_out_of_range_are_refused(policy: type[ServerQueue | Latency], settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"scheduler\.admission"):
        policy(**settings)  # type: ignore[arg-type]  # what a config could hold


counts = st.integers(0, 2000)
seconds = st.none() | st.floats(0, 100)
loads = st.builds(
    LoadSample, st.just(0.0), st.integers(1, MOST), st.just(MOST), counts, counts,
    st.none() | st.builds(ServerLoad, counts, counts), counts, st.integers(0, 3), seconds, seconds, seconds,
)  # fmt: skip


@given(st.lists(loads), st.sampled_from([Fixed, ServerQueue, Latency]))
def test_whatever_is_seen_the_answer_is_a_limit(seen: list[LoadSample], make: type[Admission]) -> None:
    policy = make()
    for each in seen:
        assert policy.decide(each).limit >= 1


@dataclass
class Sample:
    time: float
    running: int
    waiting: int
    tokens: int
    limit: int


class Watched:
    """A probe of a simulated service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def load(self) -> ServerLoad | None:
        return ServerLoad(self._service.stats.running, self._service.stats.waiting)


def supply_without_end(policy: Admission, seconds: float, *, blind: bool = False) -> list[Sample]:
    """Ten thousand tokens a second are wanted by 1,500 callers that ask again at once; a sample every half second."""
    samples: list[Sample] = []

    async def go() -> None:
        profile = PROFILES[PROFILE]
        service = make_service(profile)
        scheduler, response_times, rng = Scheduler(policy.first(MOST), LaterFirst()), ResponseTimes(), random.Random(1)

        async def caller(number: int) -> None:
            while True:
                async with scheduler.permit(QueuedRequest(group=str(number // 10))):
                    tokens = profile.output.draw(rng, 50)
                    served = await service.serve(f"{number} " * 200, tokens, 0, rng)
                    response_times.answered(served.latency_seconds, tokens)

        async def follow() -> None:
            probe = NullProbe() if blind else Watched(service)
            await run_admission_control(
                scheduler, policy, probe, response_times, most=MOST, interval_seconds=2.0, log=lambda body: None
            )

        async with anyio.create_task_group() as tasks:
            for number in range(1500):
                tasks.start_soon(caller, number)
            tasks.start_soon(follow)
            while anyio.current_time() < seconds:
                await anyio.sleep(0.5)
                stats = service.stats
                samples.append(
                    Sample(anyio.current_time(), stats.running, stats.waiting, stats.output_tokens, scheduler.limit)
                )
            tasks.cancel_scope.cancel()

    clock.run(go, clock="virtual")
    return samples


async def limits_without_a_queue(seed: int, minutes: int) -> list[int]:
    """Once a minute, at a server that takes whatever comes; each call waits about a second for its first token."""
    rng, response_times, policy, limits = random.Random(seed), ResponseTimes(), Latency(), list[int]()
    scheduler = Scheduler(policy.first(BATCH))

    async def caller() -> None:
        while True:
            async with scheduler.permit(QueuedRequest()):
                tokens = max(1, int(rng.gauss(150, 60)))
                seconds = rng.lognormvariate(0, 0.3) + tokens * 0.02 * rng.lognormvariate(0, 0.15)
                await anyio.sleep(seconds)
                response_times.answered(seconds, tokens)

    async def follow() -> None:
        await run_admission_control(
            scheduler, policy, NullProbe(), response_times, most=BATCH, interval_seconds=2.0, log=lambda body: None
        )

    async with anyio.create_task_group() as tasks:
        for _ in range(400):
            tasks.start_soon(caller)
        tasks.start_soon(follow)
        for _ in range(minutes):
            await anyio.sleep(60)
            limits.append(scheduler.limit)
        tasks.cancel_scope.cancel()
    return limits


@pytest.mark.parametrize("seed", [0, 1])
def test_a_server_without_a_queue_is_not_held_back_for_the_time_its_first_token_takes(seed: int) -> None:
    limits = clock.run(lambda: limits_without_a_queue(seed, 16 if LONG else 9), clock="virtual")
    assert min(limits[5:]) >= 0.8 * BATCH


def rate(samples: Sequence[Sample], after: float) -> float:
    """Tokens a second."""
    steady = [sample for sample in samples if sample.time >= after]
    return (steady[-1].tokens - steady[0].tokens) / (steady[-1].time - steady[0].time)


def queue_share(samples: Sequence[Sample], after: float = 0.0) -> float:
    """The server's own queue over what it works on, on average."""
    steady = [sample for sample in samples if sample.time >= after]
    return sum(sample.waiting for sample in steady) / sum(sample.running for sample in steady)


@pytest.fixture(scope="module")
def flooded() -> list[Sample]:
    """With nothing held back: all the server can do."""
    return supply_without_end(Fixed(), 300)


def test_a_followed_server_is_saturated_but_not_flooded(flooded: list[Sample]) -> None:
    samples = supply_without_end(ServerQueue(), 300)
    assert samples[0].limit == 16
    assert next(sample.time for sample in samples if sample.running == BATCH) < 60
    assert rate(samples, 60) >= 0.95 * rate(flooded, 60)
    assert queue_share(samples) < 0.10
    assert queue_share(flooded) > 2


def test_a_server_that_says_nothing_is_found_out_by_its_latency(flooded: list[Sample]) -> None:
    samples = supply_without_end(Latency(), 600, blind=True)
    assert next(sample.time for sample in samples if sample.running >= 0.95 * BATCH) < 120
    assert rate(samples, 120) >= 0.9 * rate(flooded, 120)
    assert queue_share(samples) < 0.25
