"""Waiting for rate limits, in front of the scheduler: through the client, on the virtual clock."""

from dataclasses import replace
from functools import partial

import anyio
import pytest

from flowevolve._util.errors import BackendUnreachableError
from flowevolve._util.json_types import JSON
from flowevolve.core.calls import CallScope
from flowevolve.core.model import ChatReply, Message, OverloadedError, UnreachableError, Usage
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.held_back import HeldBack
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES, APIProfile
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

pytestmark = pytest.mark.anyio

ASK = (Message("user", "hello " * 100),)
NO_JITTER = RetryPolicy(jitter=0, patience_seconds=60)


@pytest.fixture
def anyio_backend(jumping_clock):
    return ("asyncio", jumping_clock)


class Server:
    """Answers after ``takes`` seconds; what ``says`` returns for (number of the request, model) is raised or its headers."""

    base_url = "http://fake/v1"

    def __init__(self, says=lambda number, model: {}, takes=1.0, refuses_after=0.01) -> None:
        self.says = says
        self.takes = takes
        self.refuses_after = refuses_after
        self.sent: list[tuple[float, str]] = []

    async def chat(self, request, *, timeout):
        self.sent.append((anyio.current_time(), request.model))
        said = self.says(len(self.sent), request.model)
        if isinstance(said, Exception):
            await anyio.sleep(self.refuses_after)
            raise said
        await anyio.sleep(self.takes)
        return ChatReply("fine", Usage(150, 50), model=request.model, headers=said)

    def times(self, model="m"):
        return [round(at, 3) for at, asked in self.sent if asked == model]

    async def models(self):
        return ("m", "other")

    async def aclose(self) -> None:
        pass


class Rig:
    def __init__(self, server, limit=100, retry=NO_JITTER, roles=("m", "other"), **limits) -> None:
        self.scheduler = Scheduler(limit)
        self.events: list[tuple[str, dict[str, JSON]]] = []
        self.limits = Limits(
            self.scheduler,
            longest_pause=retry.patience_seconds,
            log=lambda body: self.events.append((body.kind, body.to_json())),
            **limits,
        )
        self.answered: list[int] = []
        named = {model: Model(server, model) for model in roles}
        self.client = LLMClient(named, self.scheduler, retry, 1, lambda record: None, limits=self.limits)

    async def ask(self, index=0, model="m", priority=0) -> None:
        scope = CallScope("evaluate", f"{index}/x", None, priority, 0)
        await self.client.chat(model, ASK, scope=scope)
        self.answered.append(index)

    async def ask_all(self, count) -> None:
        async with anyio.create_task_group() as tasks:
            for index in range(count):
                tasks.start_soon(self.ask, index)


async def test_configured_limits_space_requests_out() -> None:
    server = Server()
    await Rig(server, requests_per_minute=60).ask_all(5)
    assert server.times() == [0, 1, 2, 3, 4]


async def test_a_limit_on_tokens_counts_what_answers_took() -> None:
    server = Server(takes=0.0)
    await Rig(server, tokens_per_minute=6000).ask_all(4)
    gaps = [later - earlier for earlier, later in zip(server.times(), server.times()[1:], strict=False)]
    assert gaps[1:] == pytest.approx([2.0] * 2, abs=0.6)  # 200 tokens each, at 100 a second


async def test_a_storm_of_refusals_pauses_all_and_lets_them_back_one_after_the_other() -> None:
    server = Server(lambda number, model: OverloadedError("429", status=429, retry_after=5.0) if number <= 30 else {})
    rig = Rig(server)
    await rig.ask_all(30)
    first, later = server.times()[:30], server.times()[30:]
    assert first == [0] * 30
    assert len(later) == len(set(later)) == 30
    assert later[0] == 5.01
    [stats] = rig.limits.stats()
    assert (stats.model, stats.storms) == ("m", 1)
    assert stats.waited_seconds > 1


async def test_callers_that_come_during_the_pause_wait_too() -> None:
    server = Server(lambda number, model: OverloadedError("429", retry_after=20.0) if number == 1 else {})
    rig = Rig(server)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.ask, 0)
        await anyio.sleep(3)
        tasks.start_soon(rig.ask, 1)
    assert len(server.times()) == 3
    assert min(server.times()[1:]) == 20.01


async def test_who_waits_for_a_limit_holds_no_slot_and_other_models_pass() -> None:
    server = Server()
    rig = Rig(server, limit=2, requests_per_minute=6)
    async with anyio.create_task_group() as tasks:
        for index in range(4):
            tasks.start_soon(rig.ask, index)
        await anyio.sleep(5)
        assert rig.scheduler.stats().in_flight == rig.scheduler.stats().waiting == 0
        tasks.start_soon(partial(rig.ask, 9, "other"))
    assert server.times("other") == [5]
    assert server.times() == [0, 10, 20, 30]


async def test_who_waits_for_a_limit_holds_no_slot_of_the_bound_of_its_role_either() -> None:
    """The role has two models and a bound of one: while one model waits for its limit the other one passes."""
    server, own = Server(), Scheduler(1)
    rig = Rig(server, requests_per_minute=6)
    both = {model: Model(server, model, scheduler=own) for model in ("m", "other")}
    rig.client = LLMClient(
        {**both, "free": Model(server, "third")}, rig.scheduler, NO_JITTER, 1, lambda record: None, limits=rig.limits
    )
    async with anyio.create_task_group() as tasks:
        for index in range(3):
            tasks.start_soon(rig.ask, index)
        await anyio.sleep(5)
        assert rig.limits.holds_back(server.base_url, "m")
        for scheduler in (own, rig.scheduler):
            assert scheduler.stats().in_flight == scheduler.stats().waiting == 0
        tasks.start_soon(partial(rig.ask, 8, "other"))
        tasks.start_soon(partial(rig.ask, 9, "free"))
        await anyio.wait_all_tasks_blocked()
        assert own.stats().in_flight == 1
    assert server.times("other") == server.times("third") == [5]
    assert server.times() == [0, 10, 20]


async def test_how_many_requests_are_held_back_and_how_many_were_refused_is_known() -> None:
    rig = Rig(
        Server(lambda number, model: OverloadedError("429", status=429) if number < 3 else {}), requests_per_minute=6
    )
    seen = list[HeldBack]()
    async with anyio.create_task_group() as tasks:
        for index in range(3):
            tasks.start_soon(rig.ask, index)
        for at in (0.005, 5, 60):
            await anyio.sleep(at)
            seen.append(rig.limits.held_back())
    assert seen == [HeldBack(2), HeldBack(3, 1), HeldBack(0, 2)]


async def test_the_schedulers_order_holds_for_those_who_wait_for_a_limit() -> None:
    rig = Rig(Server(takes=0.0), requests_per_minute=60)
    async with anyio.create_task_group() as tasks:
        for index, priority in enumerate([5, 5, 5, 1, 3]):
            tasks.start_soon(partial(rig.ask, index, "m", priority))
    assert rig.answered == [0, 1, 3, 4, 2]  # 0 finds nobody, 1 is next already when the others come


async def test_a_pause_holds_back_those_who_wait_at_the_scheduler_too() -> None:
    server = Server(lambda number, model: OverloadedError("429", retry_after=10.0) if number == 1 else {})
    rig = Rig(server, limit=1)
    await rig.ask_all(2)
    assert server.times()[0] == 0
    assert min(server.times()[1:]) == 10.01


async def test_who_is_held_back_at_the_scheduler_has_taken_nothing_of_a_limit() -> None:
    refused = OverloadedError("429", retry_after=5.0)
    server = Server(lambda number, model: refused if number == 1 else {}, refuses_after=12)
    await Rig(server, limit=1, requests_per_minute=6).ask_all(2)
    assert server.times() == [0, 17, 27], "the second might have been sent from 10 on, when there was no slot"


async def test_who_gets_a_slot_after_the_pause_is_sent_at_once() -> None:
    server = Server(lambda number, model: OverloadedError("429", retry_after=5.0) if number == 1 else {}, takes=8)
    rig = Rig(server, limit=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(rig.ask, 0, "m", 9))
        await anyio.wait_all_tasks_blocked()
        for index, model in enumerate(("other", "m", "other"), start=1):
            tasks.start_soon(partial(rig.ask, index, model, index))
    assert [(round(at, 2), model) for at, model in server.sent[1:4]] == [(0.01, "other"), (8.01, "m"), (16.01, "other")]


async def test_headers_hold_requests_back_without_a_single_refusal() -> None:
    """A server like OpenAI's, that would refuse what is above its limit."""
    level, updated = 10.0, 0.0

    def says(number, model):
        nonlocal level, updated
        now = anyio.current_time()
        level, updated = min(10.0, level + (now - updated) / 6), now
        if level < 1:
            return OverloadedError("429", status=429)
        level -= 1
        reset = (10 - level) * 6
        return {
            "x-ratelimit-limit-requests": "10",
            "x-ratelimit-remaining-requests": str(int(level)),
            "x-ratelimit-reset-requests": f"{reset:.3f}s",
        }

    server = Server(says)
    rig = Rig(server)
    await rig.ask()
    await rig.ask_all(30)
    assert len(server.sent) == 31
    [stats] = rig.limits.stats()
    assert stats.storms == 0
    assert stats.requests_per_minute == pytest.approx(10, rel=0.2)


async def test_waiting_for_a_limit_is_no_silence_of_the_server() -> None:
    server = Server(lambda number, model: UnreachableError("reset") if number <= 2 else {})
    rig = Rig(server, requests_per_minute=1)  # each wait is as long as the patience
    await rig.ask()
    assert server.times() == [0, 60, 120]


@pytest.mark.parametrize("retry_after", [None, 5.0, 3600.0])
async def test_a_server_that_only_refuses_ends_the_run_when_patience_does(retry_after) -> None:
    server = Server(lambda number, model: OverloadedError("429", retry_after=retry_after))
    with pytest.raises(BackendUnreachableError, match="429"):
        await Rig(server).ask()
    assert 60 <= anyio.current_time() < 200


@pytest.mark.parametrize("retry_after", [None, 20.0])
async def test_so_it_does_for_many_callers(retry_after) -> None:
    server = Server(lambda number, model: OverloadedError("429", retry_after=retry_after))
    with pytest.raises(ExceptionGroup) as caught:
        await Rig(server).ask_all(64)
    assert caught.group_contains(BackendUnreachableError)
    assert 60 <= anyio.current_time() < 400
    assert len(server.sent) < 64 + 40


async def test_a_configured_limit_is_kept_even_without_patience() -> None:
    server = Server(takes=0.0)
    await Rig(server, retry=RetryPolicy(patience_seconds=0), requests_per_minute=1).ask_all(3)
    assert server.times() == [0, 60, 120]


async def test_what_headers_say_is_believed_for_as_long_as_patience_lasts() -> None:
    day = {"limit": "100", "remaining": "0", "reset": "24h"}
    server = Server(lambda number, model: {f"x-ratelimit-{name}-requests": value for name, value in day.items()})
    rig = Rig(server)
    for _ in range(3):
        await rig.ask()
    assert server.times() == [0, 61, 122]


async def test_a_busy_server_is_no_rate_limit() -> None:
    server = Server(lambda number, model: OverloadedError("503", status=503) if number == 1 else {})
    rig = Rig(server)
    await rig.ask()
    assert rig.limits.stats() == []


@pytest.mark.parametrize("after", [1, 12, 25])
async def test_who_is_cancelled_while_waiting_leaves_no_trace(after) -> None:
    server = Server(takes=0.0)
    rig = Rig(server, requests_per_minute=6)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.ask, 0)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(after):
            async with anyio.create_task_group() as others:
                for index in range(1, 5):
                    others.start_soon(rig.ask, index)
    assert not rig.limits.holds_back("http://fake/v1", "m")
    done = len(rig.answered)
    await rig.ask(9)
    assert len(server.sent) == done + 1


async def test_who_is_cancelled_while_waiting_at_the_scheduler_takes_nothing_of_a_limit() -> None:
    server = Server(takes=12.0)
    rig = Rig(server, limit=1, requests_per_minute=6)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.ask, 0)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(11):
            await rig.ask(1)  # may be sent from second 10 on, but there is no slot
    await rig.ask(2)
    assert server.times() == [0, 12]


async def test_a_storm_is_told_once() -> None:
    server = Server(lambda number, model: OverloadedError("429", retry_after=5.0) if number <= 8 else {})
    rig = Rig(server)
    await rig.ask_all(8)
    assert rig.events == [
        (
            "limits.refused",
            {"backend": "http://fake/v1", "model": "m", "pause_seconds": 5.0, "requests_per_minute": 60.0},
        )
    ]


async def test_against_a_simulated_api_few_requests_are_refused() -> None:
    profile = PROFILES["gpt-4o-mini-api"]
    assert isinstance(profile, APIProfile)
    profile = replace(profile, requests_per_minute=300.0)
    backend = SimBackend(RulesWorld(PRESETS["normal"]), profile, model="m")
    rig = Rig(backend, roles=("m",), retry=RetryPolicy())
    await rig.ask_all(1500)
    assert len(rig.answered) == 1500
    assert anyio.current_time() < 1.5 * 60 * (1500 - 300) / 300  # what the limit allows, and half as long again
    assert backend.service.stats.refused < 0.1 * 1500
