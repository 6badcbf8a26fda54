"""Admission policies: their rules one by one, and what they reach with a simulated server on the virtual clock."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowevolve import clock
from flowevolve.errors import InputError
from flowevolve.llm.admission import Admission, Load, ServerLoad, follow_server
from flowevolve.llm.gate import Gate
from flowevolve.llm.line import Ask
from flowevolve.llm.pace import Pace
from flowevolve.policies.admission import Fixed, Latency, ServerQueue
from flowevolve.policies.ordering import LaterFirst
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.service import Service, make_service

PROFILE = "qwen3-8b-h100"
BATCH = 256
MOST = 1024


def load(limit: int, running: int, waiting: int, *, at_gate: int = 100, refused: int = 0) -> Load:
    return Load(0.0, limit, MOST, running + waiting, at_gate, ServerLoad(running, waiting), refused=refused)


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


def test_requests_of_others_in_the_servers_queue_are_not_ours_to_add() -> None:
    crowded = Load(0.0, 100, MOST, 100, 50, ServerLoad(running=200, waiting=60))
    assert ServerQueue(target=0.1).decide(crowded).limit == 100 - 40


@pytest.mark.parametrize("policy", [ServerQueue(), Latency()])
def test_a_refusal_cuts_the_limit(policy: Admission) -> None:
    assert policy.decide(load(100, 100, 0, refused=1)).limit == 70


def test_a_server_that_says_nothing_is_judged_by_its_answers() -> None:
    blind = Load(0.0, 16, MOST, 16, 9, None, 20, 0, 5.0, 0.1, 0.01)
    policy = ServerQueue()
    assert [policy.decide(blind).limit for _ in range(2)] == [16, 32]


@pytest.mark.parametrize("settings", [{"least": 0}, {"least": 20}, {"target": 0.0}])
@pytest.mark.parametrize("policy", [ServerQueue, Latency])
def test_settings_out_of_range_are_refused(policy: type[ServerQueue | Latency], settings: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"scheduler\.admission"):
        policy(**settings)  # type: ignore[arg-type]  # what a config could hold


counts = st.integers(0, 2000)
seconds = st.none() | st.floats(0, 100)
loads = st.builds(
    Load, st.just(0.0), st.integers(1, MOST), st.just(MOST), counts, counts,
    st.none() | st.builds(ServerLoad, counts, counts), counts, st.integers(0, 3), seconds, seconds, seconds,
)  # fmt: skip


@given(st.lists(loads), st.sampled_from([Fixed, ServerQueue, Latency]))
def test_whatever_is_seen_the_answer_is_a_limit(seen: list[Load], make: type[Admission]) -> None:
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


class Blind:
    async def load(self) -> ServerLoad | None:
        return None


def supply_without_end(policy: Admission, seconds: float, *, blind: bool = False) -> list[Sample]:
    """Ten thousand tokens a second are wanted by 1,500 callers that ask again at once; a sample every half second."""
    samples: list[Sample] = []

    async def go() -> None:
        profile = PROFILES[PROFILE]
        service = make_service(profile)
        gate, pace, rng = Gate(policy.first(MOST), LaterFirst()), Pace(), random.Random(1)

        async def caller(number: int) -> None:
            while True:
                async with gate.slot(Ask(group=str(number // 10))):
                    tokens = profile.output.draw(rng, 50)
                    served = await service.serve(f"{number} " * 200, tokens, 0, rng)
                    pace.answered(served.latency_seconds, tokens)

        async def follow() -> None:
            probe = Blind() if blind else Watched(service)
            await follow_server(gate, policy, probe, pace, most=MOST, interval_seconds=2.0, log=lambda kind, data: None)

        async with anyio.create_task_group() as tasks:
            for number in range(1500):
                tasks.start_soon(caller, number)
            tasks.start_soon(follow)
            while anyio.current_time() < seconds:
                await anyio.sleep(0.5)
                stats = service.stats
                samples.append(
                    Sample(anyio.current_time(), stats.running, stats.waiting, stats.output_tokens, gate.limit)
                )
            tasks.cancel_scope.cancel()

    clock.run(go, clock="virtual")
    return samples


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
