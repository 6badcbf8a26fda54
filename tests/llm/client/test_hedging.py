"""Second requests for calls that hold up their item: through the client, on the virtual clock."""

import random

import anyio
import pytest

from flowevolve._util.errors import BackendUnreachableError
from flowevolve.core.budget import OverBudgetError
from flowevolve.core.calls import CallRecord, CallScope, Payer
from flowevolve.core.model import ChatReply, Message, RejectedError, ServerError, UnreachableError, Usage
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.hedging import MIN_SAMPLES, Hedging, Latencies
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.router import Router

pytestmark = pytest.mark.anyio


class Server:
    """Each request takes what ``plan`` says next, or fails with it; 1 second when the plan is at its end."""

    base_url = "http://fake/v1"

    def __init__(self) -> None:
        self.plan: list[float | Exception] = []
        self.sent: list[float] = []
        self.cancelled = 0

    async def chat(self, request, *, timeout):
        self.sent.append(anyio.current_time())
        takes = self.plan.pop(0) if self.plan else 1.0
        if isinstance(takes, Exception):
            await anyio.sleep(3)
            raise takes
        try:
            await anyio.sleep(takes)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        return ChatReply("fine", Usage(100, 20), model=request.model)

    async def models(self):
        return ("m",)

    async def aclose(self) -> None:
        pass


class Rig:
    def __init__(self, share=0.05, limit=10, transport=None, **limits) -> None:
        self.server = Server()
        self.scheduler = Scheduler(limit)
        self.limits = Limits(self.scheduler, **limits)
        self.hedging = Hedging(self.scheduler, self.limits, share)
        roles = {"r": Model(transport or self.server, "m")}
        retry = RetryPolicy(jitter=0, server_error_attempts=1)
        self.records: list[CallRecord] = []
        self.client = LLMClient(
            roles, self.scheduler, retry, 1, self.records.append, limits=self.limits, hedging=self.hedging
        )

    async def ask(self, item="1", key="x", stage="evaluate"):
        scope = CallScope(stage, f"{item}/{key}", None, 0, 0)
        return await self.client.chat("r", [Message("user", "hello")], scope=scope)

    async def learn(self, calls=40) -> None:
        """So many calls of a second each, one after the other."""
        for number in range(calls):
            await self.ask(f"early {number}")
        self.server.sent.clear()

    @property
    def figures(self):
        stats = self.hedging.stats
        return stats.sent, stats.won


async def test_a_second_request_wins_and_the_first_is_cancelled() -> None:
    rig = Rig()
    await rig.learn()
    rig.server.plan = [100.0, 1.0]
    began = anyio.current_time()
    await rig.ask()
    assert anyio.current_time() - began == pytest.approx(2.1)
    assert rig.figures == (1, 1)
    assert rig.hedging.stats.lost_tokens_estimate == 120
    assert rig.server.cancelled == 1
    assert rig.scheduler.stats().in_flight == 0
    assert len(rig.records) == 41
    assert rig.client.account.totals().requests == 41
    assert rig.client.cancelled == 0


async def test_the_first_request_may_still_win() -> None:
    rig = Rig()
    await rig.learn()
    rig.server.plan = [1.5, 100.0]
    await rig.ask()
    assert rig.figures == (1, 0)
    assert rig.server.cancelled == 1


async def test_second_requests_don_t_make_a_silent_server_look_as_if_we_had_slept() -> None:
    class Silent(Server):
        async def chat(self, request, *, timeout):
            with anyio.move_on_after(timeout):
                return await super().chat(request, timeout=timeout)
            raise UnreachableError("silent")

        async def models(self):
            raise UnreachableError("silent")

    server = Silent()
    rig = Rig(share=1.0, transport=server)
    server.plan = [10.0] * 40
    await rig.learn()
    server.plan = [1e6] * 100
    with anyio.fail_after(10_000), pytest.raises(BackendUnreachableError):
        await rig.ask()
    assert rig.figures[0] > 0


async def test_nothing_is_hedged_before_enough_is_known_of_calls_like_it() -> None:
    rig = Rig(share=0.5)
    await rig.learn(MIN_SAMPLES - 1)
    rig.server.plan = [100.0]
    await rig.ask()
    rig.server.plan = [100.0]
    await rig.ask(stage="generate")
    assert rig.figures == (0, 0)


async def test_only_what_holds_up_its_item_is_hedged() -> None:
    rig = Rig(share=0.5)
    await rig.learn()
    rig.server.plan = [50.0, 10.0]

    async def late() -> None:
        """Another call of the item, under way as usual when the first is overdue."""
        await anyio.sleep(0.9)
        rig.server.plan = [0.9]
        await rig.ask(key="late")

    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(late)
        await rig.ask()
    assert [at - began for at in rig.server.sent] == pytest.approx([0, 0.9, 1.8], abs=1e-6)
    assert rig.figures[0] == 1


async def test_several_that_are_all_overdue_are_all_hedged() -> None:
    rig = Rig(share=0.5)
    await rig.learn()
    rig.server.plan = [50.0, 60.0, 1.0, 1.0]
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for key in "ab":
            tasks.start_soon(rig.ask, "1", key)
    assert anyio.current_time() - began == pytest.approx(2.1)
    assert rig.figures == (2, 2)


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
async def test_second_requests_are_a_bounded_share(share) -> None:
    rig, rng = Rig(share=share, limit=50), random.Random(1)
    rig.server.plan = [rng.lognormvariate(0, 1.5) for _ in range(900)]
    async with anyio.create_task_group() as tasks:
        for number in range(600):
            tasks.start_soon(rig.ask, str(number))
    sent, won = rig.figures
    assert 0 < won <= sent <= share * 600 + 1
    assert len(rig.server.sent) == 600 + sent


async def test_a_failure_of_one_leaves_the_other() -> None:
    rig = Rig(share=0.5)
    await rig.learn()
    rig.server.plan = [ServerError("500"), 8.0]
    assert (await rig.ask()).text == "fine"
    rig.server.plan = [8.0, ServerError("500")]
    assert (await rig.ask()).text == "fine"
    assert rig.figures == (2, 1)


async def test_when_both_fail_the_first_error_is_raised() -> None:
    rig = Rig(share=0.5)
    await rig.learn()
    rig.server.plan = [RejectedError("first"), ServerError("second")]
    with pytest.raises(RejectedError, match="first"):
        await rig.ask()
    assert rig.scheduler.stats().in_flight == 0


async def test_an_early_failure_is_raised_at_once() -> None:
    rig = Rig(share=0.5)
    rig.server.plan = [5.0] * 40
    await rig.learn()
    rig.server.plan = [RejectedError("bad")]
    began = anyio.current_time()
    with pytest.raises(RejectedError, match="bad"):
        await rig.ask()
    assert anyio.current_time() - began == 3
    assert rig.figures == (0, 0)


async def test_a_cancelled_call_takes_both_requests_with_it() -> None:
    rig = Rig(share=0.5)
    await rig.learn()
    rig.server.plan = [100.0, 100.0]
    with anyio.move_on_after(5):
        await rig.ask()
    assert rig.server.cancelled == 2
    assert rig.scheduler.stats().in_flight == rig.scheduler.stats().waiting == 0
    assert rig.client.cancelled == 1


async def test_a_second_request_waits_for_a_slot_like_any_other() -> None:
    rig = Rig(share=0.5, limit=2)
    await rig.learn()
    rig.server.plan = [100.0, 5.0, 1.0]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.ask, "1")
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(rig.ask, "2", "y", "other stage")
    assert rig.scheduler.stats().peak == 2
    assert rig.figures == (1, 1)
    assert rig.server.sent[2] - rig.server.sent[1] == 5


class Purse(Payer):
    """Pays for one request."""

    def __init__(self) -> None:
        self.left = 1

    def check(self) -> None:
        if not self.left:
            raise OverBudgetError("tokens", 1)
        self.left -= 1


async def test_a_second_request_that_nothing_is_left_for_is_not_sent() -> None:
    rig = Rig()
    await rig.learn()
    rig.server.plan = [100.0, 1.0]
    scope, began = CallScope("evaluate", "1/x", None, 0, 0), anyio.current_time()
    await rig.client.chat("r", [Message("user", "hello")], scope=scope, payer=Purse())
    assert anyio.current_time() - began == pytest.approx(100)
    assert rig.figures == (0, 0)
    assert len(rig.server.sent) == 1
    assert rig.scheduler.stats().in_flight == 0


async def test_a_second_request_that_was_not_sent_takes_nothing_of_the_share() -> None:
    rig = Rig(share=0.02, limit=2)  # of 40 to 50 calls one
    await rig.learn()
    rig.server.plan = [100.0]
    scope = CallScope("evaluate", "1/x", None, 0, 0)
    await rig.client.chat("r", [Message("user", "hello")], scope=scope, payer=Purse())  # which pays for the first alone
    rig.server.plan = [3.0, 5.0]
    async with anyio.create_task_group() as tasks:  # the first is answered while the second waits for a slot
        tasks.start_soon(rig.ask, "2")
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(rig.ask, "3", "y", "other stage")
    assert rig.figures == (0, 0)
    rig.server.plan = [100.0, 1.0]
    await rig.ask("4")
    assert rig.figures == (1, 1)


async def test_nothing_is_hedged_where_requests_wait_for_a_rate_limit() -> None:
    rig = Rig(share=0.5, requests_per_minute=60)
    await rig.learn()
    rig.server.plan = [20.0, *[0.1] * 30]
    async with anyio.create_task_group() as tasks:
        for item in range(15):
            tasks.start_soon(rig.ask, str(item))
    assert rig.server.sent[14] - rig.server.sent[0] == pytest.approx(14)
    assert rig.figures == (1, 1)  # once nobody waits any more
    assert len(rig.server.sent) == 16


async def test_the_second_request_goes_to_another_endpoint() -> None:
    slow, quick = Server(), Server()
    rig = Rig(share=0.5, transport=Router({"http://a/v1": slow, "http://b/v1": quick}))
    await rig.learn()
    slow.sent.clear()
    quick.sent.clear()
    slow.plan, quick.plan = [100.0], []
    await rig.ask()
    if not slow.sent:
        await rig.ask()
    assert (len(slow.sent), slow.cancelled) == (1, 1)
    assert rig.figures == (1, 1)


def test_the_usual_time_is_the_95th_percentile_and_longer_for_long_answers() -> None:
    latencies = Latencies()
    for seconds in range(1, 101):
        latencies.note(float(seconds), 100.0)
    assert latencies.hedge_after(100.0) == pytest.approx(1.1 * 95)
    assert latencies.hedge_after(50.0) == pytest.approx(1.1 * 95)
    assert latencies.hedge_after(200.0) == pytest.approx(1.1 * 190)
