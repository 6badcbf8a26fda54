import anyio
import pytest

from flowevolve.llm.scheduling.admission import (
    LimitDecision,
    LoadSample,
    LoadSummary,
    ServerLoad,
    run_admission_control,
)
from flowevolve.llm.scheduling.request_queue import QueuedRequest
from flowevolve.llm.scheduling.response_times import ResponseTimes
from flowevolve.llm.scheduling.scheduler import Scheduler

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(jumping_clock):
    return ("asyncio", jumping_clock)


class Scripted:
    """A policy that answers what it is told to, and keeps what it saw; for ever the last entry."""

    def __init__(self, *limits: int) -> None:
        self.limits = list(limits)
        self.seen: list[LoadSample] = []

    def first(self, most: int) -> int:
        return most

    def decide(self, load: LoadSample) -> LimitDecision:
        self.seen.append(load)
        return LimitDecision(self.limits[0] if len(self.limits) == 1 else self.limits.pop(0), "because")


class Says:
    """These answers in turn, the last for ever."""

    def __init__(self, *answers: ServerLoad | None) -> None:
        self.answers = list(answers)

    async def load(self) -> ServerLoad | None:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def followed(policy, scheduler, seconds, probe=None, response_times=None, observed=None):
    events = []
    with anyio.move_on_after(seconds):
        await run_admission_control(
            scheduler,
            policy,
            probe or Says(None),
            response_times or ResponseTimes(),
            most=50,
            interval_seconds=2.0,
            log=lambda body: events.append((anyio.current_time(), body.kind, body.to_json())),
            observed=observed,
        )
    return events


async def test_the_limit_follows_the_policy_and_each_change_is_logged_with_its_reason() -> None:
    scheduler = Scheduler(10)
    events = await followed(Scripted(20, 20, 30), scheduler, 11, Says(ServerLoad(4, 1)))
    assert scheduler.limit == 30
    changes = [(time, data) for time, kind, data in events if kind == "admission.changed"]
    assert [(time, data["before"], data["limit"], data["reason"]) for time, data in changes] == [
        (2, 10, 20, "because"),
        (6, 20, 30, "because"),
    ]
    assert (changes[0][1]["server_running"], changes[0][1]["server_waiting"]) == (4, 1)


async def test_what_a_server_says_is_logged_at_every_look_and_added_up() -> None:
    says = [
        ServerLoad(4, 1, 0.25, 1000.0, 500.0),
        ServerLoad(8, 3, 0.75, 1100.0, 590.0),
        None,
        ServerLoad(0, 2, 0.5, 300.0, 60.0),  # started again: its counters began at zero
    ]
    observed = LoadSummary(restarts=1)
    events = await followed(Scripted(10), Scheduler(10), 9, Says(*says), observed=observed)
    assert events[0] == (
        2,
        "server.load",
        {"running": 4, "waiting": 1, "cache_usage": 0.25, "prefix_hit_rate": 0.5},
    )
    assert [(time, kind) for time, kind, _ in events] == [(2, "server.load"), (4, "server.load"), (8, "server.load")]
    assert observed.to_json() == {
        "looks": 3,
        "mean_running": 4.0,
        "mean_waiting": 2.0,
        "mean_cache_usage": 0.5,
        "prefix_hit_rate": (90 + 60) / (100 + 300),
        "restarts": 1,
    }


def test_a_server_that_says_little_leaves_the_rest_unknown() -> None:
    observed = LoadSummary()
    observed.add(ServerLoad(1, 0))
    observed.add(ServerLoad(3, 0))
    assert observed.to_json() == {
        "looks": 2,
        "mean_running": 2.0,
        "mean_waiting": 0.0,
        "mean_cache_usage": None,
        "prefix_hit_rate": None,
        "restarts": 0,
    }


@pytest.mark.parametrize(("asked", "given"), [(0, 1), (-5, 1), (1000, 50)])
async def test_the_limit_stays_between_one_and_the_most_allowed(asked, given) -> None:
    scheduler = Scheduler(10)
    await followed(Scripted(asked), scheduler, 3)
    assert scheduler.limit == given


async def test_the_policy_is_told_of_scheduler_server_and_pace() -> None:
    scheduler, response_times, policy = Scheduler(2), ResponseTimes(), Scripted(2)
    response_times.answered(8.0, 100)
    response_times.answered(4.0, 50)
    response_times.refused()

    async def hold() -> None:
        async with scheduler.permit(QueuedRequest()):
            await anyio.sleep(10)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(hold)
        events = await followed(policy, scheduler, 5, Says(ServerLoad(7, 3)), response_times)
        tasks.cancel_scope.cancel()
    assert {kind for _, kind, _ in events} == {"server.load"}
    first, second = policy.seen
    assert (first.now, first.limit, first.most, first.in_flight, first.waiting, first.used_up) == (2, 2, 50, 2, 3, True)
    assert (first.server, first.answered, first.refused) == (ServerLoad(7, 3), 2, 1)
    assert first.seconds_per_token == pytest.approx(0.08)
    assert (second.answered, second.refused, second.seconds_per_token, second.wait_seconds) == (0, 0, None, None)
