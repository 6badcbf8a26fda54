import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial

import anyio
import pytest
from hypothesis import given, strategies as st
from structlog.testing import capture_logs

from flowevolve._util.clock import VirtualClockLoop
from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError, InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import Pulse
from flowevolve.core.budget import OverBudgetError
from flowevolve.core.calls import CallRecord, CallScope, Payer, call_seed
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    LLMError,
    Message,
    OutOfCreditError,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    Transport,
    UnreachableError,
    Usage,
    WrongAddressError,
)
from flowevolve.llm.client.accounting import Account, Price, Spending, Totals
from flowevolve.llm.client.client import (
    FAILURES_BEFORE_GIVING_UP,
    MAX_UNANSWERED_IN_A_ROW,
    LLMClient,
)
from flowevolve.llm.client.outages import MAX_FAILED_IN_A_ROW
from flowevolve.llm.client.pending_call import server_priority
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.client.role import Role
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.policies.ordering import LaterFirst

pytestmark = pytest.mark.anyio

ASK = [Message("user", "hello")]
STEADY = RetryPolicy(base_seconds=1, max_seconds=8, jitter=0, server_error_attempts=3, patience_seconds=60)


@pytest.fixture
def anyio_backend(jumping_clock):
    return ("asyncio", jumping_clock)


def say(text):
    return [Message("user", text)]


class Scripted:
    """Answers with what the script says next (an error is raised), and for ever with the last entry."""

    base_url = "http://fake/v1"

    def __init__(self, *script, takes=0.0, models=("m",)) -> None:
        self.script = list(script) or ["fine"]
        self.takes = takes
        self.served = models
        self.requests: list[ChatRequest] = []
        self.sent_at: list[float] = []

    async def chat(self, request, *, timeout):
        self.requests.append(request)
        self.sent_at.append(anyio.current_time())
        next_up = self.script[0] if len(self.script) == 1 else self.script.pop(0)
        try:
            with anyio.fail_after(timeout):
                await anyio.sleep(self.takes)
        except TimeoutError:
            raise UnreachableError("too slow") from None
        if isinstance(next_up, Exception):
            raise next_up
        return ChatReply(next_up, Usage(100, 10, 40), model=request.model)

    async def embed(self, request, *, timeout):
        raise RejectedError("HTTP 400: no embeddings of this")

    async def models(self):
        if isinstance(self.served, Exception):
            raise self.served
        return self.served

    async def aclose(self) -> None:
        pass


class Rig:
    """A client over scripted transports, one role each, and what its observer saw."""

    def __init__(self, *transports, limit=10, retry=STEADY, seed=7, prices=None, order=None, **role) -> None:
        self.records: list[CallRecord] = []
        self.scheduler = Scheduler(limit, order)
        self.roles = {f"r{n}": Role(transport, "m", **role) for n, transport in enumerate(transports)}
        self.events: list[tuple[str, dict[str, JSON]]] = []
        self.client = LLMClient(
            self.roles,
            self.scheduler,
            retry,
            seed,
            self.records.append,
            Account(prices or {}),
            log=lambda body: self.events.append((body.kind, body.to_json())),
        )

    async def ask(self, role="r0", index=0, priority=0, candidate=None, item="1", messages=ASK, **options):
        scope = CallScope("generate", item, candidate, priority, index)
        return await self.client.chat(role, messages, scope=scope, **options)


def test_the_fake_is_a_transport() -> None:
    assert isinstance(Scripted(), Transport)


async def test_a_call_is_built_from_role_and_scope_accounted_and_reported() -> None:
    transport = Scripted("fine", takes=2)
    rig = Rig(
        transport,
        temperature=0.5,
        max_tokens=99,
        extra={"top_k": 3},
        send_priority=True,
        prices={"m": Price(1, 0.5, 10)},
    )
    await anyio.sleep(1)
    reply = await rig.ask(priority=4, candidate="c1")
    assert reply.text == "fine"
    [request] = transport.requests
    assert (request.model, request.messages, request.temperature, request.max_tokens) == ("m", tuple(ASK), 0.5, 99)
    assert (request.priority, request.extra) == (4001, {"top_k": 3})  # rank 4, the only one of its group
    [record] = rig.records
    assert (record.role, record.scope.candidate, record.request, record.reply) == ("r0", "c1", request, reply)
    assert (record.error, record.attempts, record.queued, record.started, record.finished) == (None, 1, 1, 1, 3)
    totals = rig.client.account.totals()
    assert (totals.requests, totals.failed, totals.retries, totals.latency_seconds) == (1, 0, 0, 2)
    assert totals.dollars == reply.dollars == pytest.approx(180e-6)
    assert rig.client.account.by_model() == {"m": totals}


async def test_a_call_may_override_the_roles_sampling() -> None:
    transport = Scripted()
    rig = Rig(transport, temperature=0.5, max_tokens=99)
    await rig.ask(temperature=0.0, max_tokens=1)
    assert (transport.requests[0].temperature, transport.requests[0].max_tokens) == (0.0, 1)


async def test_limits_are_those_of_answers_and_have_room_for_thinking() -> None:
    transport = Scripted()
    rig = Rig(transport, max_tokens=99, thinking_tokens=1000)
    await rig.ask()
    await rig.ask(max_tokens=400)
    assert [request.max_tokens for request in transport.requests] == [1099, 1400]
    unlimited = Rig(transport, thinking_tokens=1000)
    await unlimited.ask()
    assert transport.requests[-1].max_tokens is None


async def test_chats_may_have_fields_of_their_own() -> None:
    transport = Scripted()
    await Rig(transport, extra={"a": 1}, chat_extra={"b": 2}).ask()
    await Rig(transport, extra={"a": 1}).ask()
    assert [request.extra for request in transport.requests] == [{"b": 2}, {"a": 1}]


async def test_what_a_server_may_not_understand_is_left_out() -> None:
    transport = Scripted()
    await Rig(transport, send_seed=False).ask(priority=5)
    assert (transport.requests[0].seed, transport.requests[0].priority) == (None, None)


async def test_a_server_that_schedules_is_told_rank_and_what_is_left_of_the_group() -> None:
    transport = Scripted(takes=1)
    rig = Rig(transport, limit=1, send_priority=True)
    async with anyio.create_task_group() as tasks:
        for index in range(3):
            tasks.start_soon(partial(rig.ask, index=index, priority=2, item="7/example"))
    assert [request.priority for request in transport.requests] == [2001, 2002, 2001]
    assert server_priority(2, 5000) < server_priority(3, 1)


async def test_examples_that_took_long_before_go_first() -> None:
    class Lengths(Scripted):
        async def chat(self, request, *, timeout):
            reply = await super().chat(request, timeout=timeout)
            return replace(reply, usage=Usage(1, int(request.messages[0].content)))

    transport = Lengths(takes=1)
    rig = Rig(transport, limit=1, order=LaterFirst())

    async def evaluate(item) -> list[str]:
        already = len(transport.requests)
        async with anyio.create_task_group() as tasks:
            for tokens in ("10", "500", "90"):
                scope = CallScope("evaluate", f"{item}/{tokens}", None, 0, 0)
                tasks.start_soon(partial(rig.client.chat, "r0", say(tokens), scope=scope))
        return [request.messages[0].content for request in transport.requests[already:]]

    assert await evaluate(1) == ["10", "500", "90"]
    assert (await evaluate(2))[1:] == ["500", "90"]  # the first finds the gate empty
    observed = rig.client.response_times.take_sample()
    assert (observed.answered, observed.refused, observed.latency_seconds) == (6, 0, 1)
    assert observed.seconds_per_token == pytest.approx(6 / 1200)
    assert rig.client.response_times.take_sample().seconds_per_token is None


async def test_refusals_for_want_of_capacity_are_counted() -> None:
    rig = Rig(Scripted(OverloadedError("429"), ServerError("500"), OverloadedError("429"), "fine"))
    await rig.ask()
    assert rig.client.response_times.take_sample().refused == 2
    assert rig.client.response_times.take_sample().refused == 0


async def test_seeds_follow_the_work_and_not_the_order() -> None:
    async def seeds(indexes, seed=7):
        transport = Scripted()
        rig = Rig(transport, seed=seed)
        for index in indexes:
            await rig.ask(index=index)
        return dict(zip(indexes, [request.seed for request in transport.requests], strict=True))

    forwards, backwards = await seeds(range(5)), await seeds(range(4, -1, -1))
    assert forwards == backwards
    assert len(set(forwards.values())) == 5
    assert forwards != await seeds(range(5), seed=8)


def test_seeds_are_the_same_in_every_process() -> None:
    assert call_seed(7, CallScope("generate", "1/a", "ignored", 3, 0)) == 257834693


@given(st.integers(), st.text(), st.text(), st.integers(0, 9))
def test_seeds_fit_31_bits(seed, stage, item, index) -> None:
    assert 0 <= call_seed(seed, CallScope(stage, item, None, 0, index)) < 2**31


async def test_an_unknown_role_is_the_users_mistake() -> None:
    with pytest.raises(InputError, match=r"there is no LLM role 'judge'; .*it has: r0$"):
        await Rig(Scripted()).ask("judge")


# Retries


async def test_backs_off_between_attempts_and_repeats_the_same_request() -> None:
    transport = Scripted(ServerError("500"), OverloadedError("429", retry_after=20), UnreachableError("reset"), "fine")
    rig = Rig(transport)
    assert (await rig.ask()).text == "fine"
    assert transport.sent_at == [0, 1, 21, 22]
    assert len(set(map(id, transport.requests))) == 1
    [record] = rig.records
    assert (record.attempts, record.queued, record.started, record.finished) == (4, 0, 22, 22)
    assert rig.client.account.totals().retries == 3


async def test_calls_that_a_busy_server_sends_away_do_not_come_back_as_a_herd() -> None:
    busy = OverloadedError("503", status=503, retry_after=40)
    transport = Scripted(*[busy] * 200, *["fine"] * 200)
    rig = Rig(transport, limit=200, retry=RetryPolicy())
    async with anyio.create_task_group() as tasks:
        for item in range(200):
            tasks.start_soon(partial(rig.ask, item=str(item)))
    back = [at for at in transport.sent_at if at]
    assert len(back) == 200
    assert min(back) >= 40
    assert max(back) <= 50
    assert max(sum(start <= at < start + 1 for at in back) for start in range(40, 50)) < 40


async def test_the_slot_is_free_while_backing_off() -> None:
    slow = Scripted(ServerError("500"), "late")
    rig = Rig(slow, Scripted("early"), limit=1, retry=RetryPolicy(base_seconds=30, max_seconds=30))
    finished = []

    async def ask(role) -> None:
        finished.append((await rig.ask(role)).text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "r0")
        await anyio.sleep(1)
        tasks.start_soon(ask, "r1")
    assert finished == ["early", "late"]


@pytest.mark.parametrize("error", [RejectedError("prompt too long", status=400), ServerError("broken", status=500)])
async def test_a_requests_own_trouble_reaches_the_caller_as_it_is(error) -> None:
    rig = Rig(Scripted(error))
    with pytest.raises(type(error)) as caught:
        await rig.ask(candidate="c1")
    assert caught.value is error
    [record] = rig.records
    assert (record.reply, record.error) == (None, f"{type(error).__name__}: {error}")
    assert record.attempts == (3 if isinstance(error, ServerError) else 1)
    totals = rig.client.account.totals()
    assert (totals.requests, totals.failed, totals.usage) == (1, 1, Usage())


async def test_kinds_of_trouble_are_counted_apart() -> None:
    errors = [OverloadedError("429")] * 5 + [ServerError("500")] * 2
    assert (await Rig(Scripted(*errors, "fine")).ask()).text == "fine"


def payer(*, attempts: int = 9) -> tuple[list[tuple[Usage, float | None]], Payer]:
    """Who pays for a call with so many attempts at most, and a list of what it was told to pay."""
    paid: list[tuple[Usage, float | None]] = []
    left = iter(range(attempts))

    class Purse(Payer):
        def check(self) -> None:
            if paid or next(left, None) is None:
                raise OverBudgetError("tokens", 1)

        def pay(self, usage: Usage, dollars: float | None) -> None:
            paid.append((usage, dollars))

    return paid, Purse()


async def test_nothing_is_sent_for_who_has_nothing_left_to_pay_with() -> None:
    paid, purse = payer(attempts=0)
    server = Scripted("fine")
    with pytest.raises(OverBudgetError):
        await Rig(server).ask(payer=purse)
    assert (paid, server.requests) == ([], [])


async def test_what_a_failed_attempt_is_paid_for_counts_where_no_other_can_be_paid_for() -> None:
    paid, purse = payer(attempts=1)
    empty = ServerError("the answer has no text", usage=Usage(90, 20))
    rig = Rig(Scripted(empty, "fine"), prices={"m": Price(1, 0.5, 10)})
    with pytest.raises(OverBudgetError):
        await rig.ask(payer=purse)
    totals = rig.client.account.totals()
    assert (totals.requests, totals.failed, totals.retries, totals.usage) == (1, 1, 0, Usage(90, 20))
    assert paid == [(Usage(90, 20), totals.dollars)]
    (record,) = rig.records
    assert (record.reply, record.error) == (None, "ServerError: the answer has no text")
    assert (record.attempts, record.failed_usage) == (1, Usage(90, 20))


async def test_what_failed_attempts_are_paid_for_counts_with_the_reply() -> None:
    paid, purse = payer()
    empty = ServerError("the answer has no text", usage=Usage(90, 20))
    rig = Rig(Scripted(empty, UnreachableError("reset"), "fine"), prices={"m": Price(1, 0.5, 10)})
    reply = await rig.ask(payer=purse)
    assert reply.usage == Usage(190, 30, 40) == rig.client.account.totals().usage
    assert rig.records[0].reply == reply
    assert paid == [(reply.usage, reply.dollars)]
    assert rig.client.account.totals().dollars == reply.dollars == pytest.approx((150 + 20 + 300) / 1e6)


async def test_what_a_call_that_failed_is_paid_for_counts() -> None:
    paid, purse = payer()
    rig = Rig(Scripted(ServerError("the answer has no text", usage=Usage(90, 20))), prices={"m": Price(1, 0.5, 10)})
    with pytest.raises(ServerError):
        await rig.ask(payer=purse)
    totals = rig.client.account.totals()
    assert (totals.failed, totals.usage) == (1, Usage(270, 60))
    assert totals.dollars == pytest.approx((270 + 600) / 1e6)
    assert paid == [(totals.usage, totals.dollars)]
    assert rig.records[0].failed_usage == totals.usage


class Silent(Scripted):
    """Says of its answers only so much of what they took."""

    def __init__(self, usage: Usage, text: str = "0123456789") -> None:
        super().__init__(text)
        self.usage = usage

    async def chat(self, request, *, timeout):
        return replace(await super().chat(request, timeout=timeout), usage=self.usage)


@pytest.mark.parametrize(
    ("told", "text", "counted", "estimated"),
    [
        (Usage(), "0123456789", Usage(2, 3), 1),  # "hello" is two tokens, the answer three
        (Usage(), "", Usage(2, 0), 1),
        (Usage(9), "0123456789", Usage(9, 3), 1),
        (Usage(0, 4), "0123456789", Usage(2, 4), 1),
        (Usage(9, 0, 5), "", Usage(9, 0, 5), 0),
    ],
)
async def test_what_a_server_does_not_say_is_estimated_from_characters(told, text, counted, estimated) -> None:
    rig = Rig(Silent(told, text), prices={"m": Price(1, 1, 10)})
    reply = await rig.ask()
    totals = rig.client.account.totals()
    assert (reply.usage, reply.estimated, totals.usage, totals.estimated) == (
        counted,
        bool(estimated),
        counted,
        estimated,
    )
    assert totals.dollars == pytest.approx((counted.prompt_tokens + 10 * counted.completion_tokens) / 1e6)


async def test_that_it_is_estimated_is_told_once() -> None:
    rig = Rig(Silent(Usage()))
    await rig.ask()
    await rig.ask(index=1)
    assert rig.events == [("usage.estimated", {"backend": "http://fake/v1", "model": "m"})]
    assert rig.client.account.by_model()["m"].estimated == 2


async def test_a_refusal_ends_the_run_and_names_model_and_backend() -> None:
    transport = Scripted(RefusedError("HTTP 401: bad key"))
    rig = Rig(transport)
    with pytest.raises(BackendRefusedError, match=r"http://fake/v1.*'m'.*'r0'.*bad key.*the API key"):
        await rig.ask()
    assert (len(transport.requests), len(rig.records)) == (1, 1)


@pytest.mark.parametrize("end", ["", "."])
async def test_an_account_without_money_is_told_as_such(end: str) -> None:
    rig = Rig(Scripted(OutOfCreditError(f"HTTP 429: you exceeded your quota{end}", status=429)))
    with pytest.raises(
        BackendRefusedError, match=r"exceeded your quota\. The account has no money or quota left"
    ) as caught:
        await rig.ask()
    assert "API key" not in str(caught.value)


@pytest.mark.parametrize("error", [UnreachableError("connection refused"), OverloadedError("429: slow down")])
async def test_a_backend_silent_for_longer_than_patience_ends_the_run(error) -> None:
    rig = Rig(Scripted(error))
    with pytest.raises(BackendUnreachableError, match=rf"http://fake/v1.* 63 s .*{error}.*patience_seconds"):
        await rig.ask()
    assert len(rig.records) == 1
    assert anyio.current_time() == 1 + 2 + 4 + 7 * 8  # the first moment past 60 s at which an attempt failed


async def test_patience_starts_anew_with_every_success_of_the_backend() -> None:
    shared = Scripted(OverloadedError("429"))
    rig = Rig(shared)

    async def one_success() -> None:
        await anyio.sleep(50.5)
        shared.script[:] = ["fine", OverloadedError("429")]
        await rig.ask(index=1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one_success)
        with pytest.raises(BackendUnreachableError):
            await rig.ask()
    assert 50.5 + 60 <= anyio.current_time() < 50.5 + 60 + 8 + 5  # at most a backoff more, and a wait for the rate


@pytest.mark.parametrize("after", [0.5, 1.5, 2.5])
async def test_time_in_which_the_process_did_not_run_is_no_silence(after) -> None:
    """A laptop asleep for an hour, while a call waits for its next attempt or is making it."""
    down = UnreachableError("network is unreachable")
    rig = Rig(Scripted(down, down, down, "fine", takes=0.9), timeout_seconds=50)

    async def sleep() -> None:
        await anyio.sleep(after)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        loop.now += 3600

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleep)
        reply = await rig.ask()
    assert reply.text == "fine"
    assert 3600 < anyio.current_time() < 3620


async def test_another_backends_success_says_nothing() -> None:
    rig = Rig(Scripted(UnreachableError("refused")), Scripted())

    async def other() -> None:
        for index in range(100):
            await rig.ask("r1", index)
            await anyio.sleep(1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        with pytest.raises(BackendUnreachableError):
            await rig.ask()
        assert anyio.current_time() < 70


async def test_a_request_too_long_for_its_timeout_and_alone_in_flight_does_not_end_the_run() -> None:
    """Nothing else shows that the server is alive, so it is asked for its models."""
    endless = Scripted(takes=1000)
    rig = Rig(endless, timeout_seconds=100)
    with pytest.raises(UnreachableError, match="too slow"):
        await rig.ask()
    assert len(endless.requests) == 3
    endless.takes = 1
    assert (await rig.ask()).text == "fine"


async def test_one_that_is_silent_for_its_whole_timeout_and_does_not_tell_its_models_ends_the_run() -> None:
    rig = Rig(Scripted(takes=1000, models=UnreachableError("refused")), timeout_seconds=100)
    with pytest.raises(BackendUnreachableError, match="too slow"):
        await rig.ask()


async def test_who_is_answered_while_the_server_is_asked_for_its_models_shows_that_it_is_alive() -> None:
    class Slow(Scripted):
        async def models(self):
            await anyio.sleep(20)
            raise UnreachableError("busy")

    server = Slow(takes=1000)
    rig = Rig(server, timeout_seconds=100)

    async def other() -> None:
        await anyio.sleep(205)  # the first call's second attempt has ended, and the server is being asked
        server.takes = 1
        await rig.ask(index=1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        assert (await rig.ask()).text == "fine"


async def test_a_server_that_tells_its_models_and_answers_nothing_ends_the_run_too() -> None:
    rig = Rig(Scripted(takes=1000), timeout_seconds=100)
    for index in range(MAX_UNANSWERED_IN_A_ROW):
        with pytest.raises(UnreachableError):
            await rig.ask(index=index)
    with pytest.raises(BackendUnreachableError):
        await rig.ask(index=9)


async def fail_often(rig: Rig, error: LLMError) -> None:
    """Has the server answer once, and then make so many calls fail in a row as it may without counting as silent."""
    server = rig.roles["r0"].transport
    assert isinstance(server, Scripted)
    await rig.ask()
    server.script[:] = [error]
    for index in range(MAX_FAILED_IN_A_ROW):
        with pytest.raises(type(error)):
            await rig.ask(index=index, candidate=f"c{index % 2}")


async def test_a_server_that_answered_and_then_only_fails_counts_as_silent() -> None:
    rig = Rig(Scripted())
    await fail_often(rig, ServerError("HTTP 500: out of order", status=500))
    began = anyio.current_time()
    with pytest.raises(BackendUnreachableError, match=r"given no answer for .*HTTP 500: out of order"):
        await rig.ask(index=99)
    assert anyio.current_time() - began >= STEADY.patience_seconds


async def test_it_is_waited_for_and_its_answer_ends_the_silence() -> None:
    server = Scripted()
    rig = Rig(server)
    broken = ServerError("HTTP 500", status=500)
    await fail_often(rig, broken)
    server.script[:] = [*[broken] * 8, "fine"]
    assert (await rig.ask(index=98)).text == "fine"
    server.script[:] = [broken]
    with pytest.raises(ServerError):
        await rig.ask(index=99)


async def test_of_many_calls_in_flight_the_failing_server_costs_only_so_many() -> None:
    server = Scripted()
    rig = Rig(server, limit=50)
    await rig.ask()
    server.script[:] = [*[ServerError("HTTP 500", status=500)] * 300, "fine"]
    lost: list[int] = []

    async def one(index: int) -> None:
        try:
            await rig.ask(index=index, item=str(index))
        except ServerError:
            lost.append(index)

    async with anyio.create_task_group() as tasks:
        for index in range(50):
            tasks.start_soon(one, index)
    assert len(lost) == MAX_FAILED_IN_A_ROW


TOO_LONG = ServerError("HTTP 500: the context is too long", status=500)
REJECTED = RejectedError("HTTP 400: the prompt is too long", status=400)
NOVEL = say("a novel")


class Narrow(Scripted):
    """Answers everything but novels."""

    def __init__(self, error: LLMError = TOO_LONG, *, shortest: int = 0) -> None:
        super().__init__()
        self._error = error
        self._shortest = shortest
        """Requests for fewer tokens are rejected, as OpenAI's reasoning models reject them."""

    async def chat(self, request, *, timeout):
        answer = await super().chat(request, timeout=timeout)
        if request.messages == tuple(NOVEL):
            raise self._error
        if (request.max_tokens or 99) < self._shortest:
            raise RejectedError("HTTP 400: Could not finish the message because max_tokens was reached", status=400)
        return answer


async def fails_each_time(rig: Rig, calls: int, *candidates: str) -> None:
    """As many calls for these candidates in turn, each of which the server makes fail."""
    for index in range(calls):
        with pytest.raises(LLMError, match="too long"):
            await rig.ask(index=index, candidate=candidates[index % len(candidates)], messages=NOVEL)


@pytest.mark.parametrize("shortest", [0, 16])
@pytest.mark.parametrize("error", [TOO_LONG, REJECTED])
@pytest.mark.parametrize("candidates", [["c9"], ["c8", "c9"]])
async def test_candidates_that_a_server_cannot_take_do_not_end_the_run(
    candidates: list[str], error: LLMError, shortest: int
) -> None:
    rig = Rig(Narrow(error, shortest=shortest))
    await rig.ask()
    await fails_each_time(rig, 4 * MAX_FAILED_IN_A_ROW, *candidates)
    assert (await rig.ask(index=99, candidate="c10")).text == "fine"


async def test_a_server_that_rejects_what_it_answered_before_is_waited_for_and_then_ends_the_run() -> None:
    server = Scripted()
    rig = Rig(server)
    await fail_often(rig, REJECTED)
    server.script[:] = [*[REJECTED] * 9, "fine"]
    assert (await rig.ask(index=98)).text == "fine"
    await fail_often(rig, REJECTED)
    began = anyio.current_time()
    with pytest.raises(BackendUnreachableError, match=r"has rejected every request .*for 6. s") as ended:
        await rig.ask(index=99)
    told = str(ended.value)
    assert "what it answered before" in told
    assert "HTTP 400: the prompt is too long. Look at its account" in told
    assert "no answer" not in told
    assert "Start the server" not in told
    assert anyio.current_time() - began >= STEADY.patience_seconds
    assert rig.records[-1].error == "ServerError: it refuses what it answered before: HTTP 400: the prompt is too long"


async def test_rejections_of_a_model_that_was_never_answered_say_nothing_of_its_server() -> None:
    """As of embeddings, without which the work goes on."""
    server = Scripted()
    rig = Rig(server)
    rig.client = LLMClient(
        {**rig.roles, "vectors": Role(server, "vectors")}, rig.scheduler, STEADY, 1, rig.records.append
    )
    await rig.ask()
    for _ in range(2 * MAX_FAILED_IN_A_ROW):
        with pytest.raises(RejectedError):
            await rig.client.embed("vectors", ["a text"], scope=CallScope("novelty", "1", None, 0, 0))


async def test_that_it_answers_what_it_answered_before_is_asked_once_in_so_many_failures_for_one_token_and_paid() -> (
    None
):
    server = Narrow()
    rig = Rig(server)
    await rig.ask(max_tokens=50)
    await fails_each_time(rig, 3 * (MAX_FAILED_IN_A_ROW + 1), "c8", "c9")
    known = [request for request in server.requests if request.messages == tuple(ASK)]
    assert [request.max_tokens for request in known] == [50, 1, 1, 1]
    assert rig.client.account.totals().usage == Usage(400, 40, 160)


class Watched(Narrow):
    """Rejects novels at once, and takes its time over what it answered before; counts what it has at a time."""

    def __init__(self, again: LLMError | str = "fine", *, takes: float = 0.0, shortest: int = 0) -> None:
        super().__init__(REJECTED, shortest=shortest)
        self.again = again
        self.seconds = takes
        self.repeats: list[int | None] = []
        """The limits of tokens of the requests that are no novels, but for the first."""
        self.at_once = self.most_at_once = self.repeats_at_once = self.most_repeats_at_once = 0

    async def chat(self, request, *, timeout):
        novel = request.messages == tuple(NOVEL)
        repeated = not novel and len(self.requests) > 0
        self.at_once += 1
        self.repeats_at_once += repeated
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.most_repeats_at_once = max(self.most_repeats_at_once, self.repeats_at_once)
        try:
            if novel:
                await anyio.sleep(0.05)
            elif repeated:
                self.repeats.append(request.max_tokens)
                with anyio.move_on_after(timeout):
                    await anyio.sleep(self.seconds)
                if self.seconds > timeout:
                    raise UnreachableError("too slow")
                if isinstance(self.again, LLMError):
                    raise self.again
            return await super().chat(request, timeout=timeout)
        finally:
            self.at_once -= 1
            self.repeats_at_once -= repeated


async def side_by_side(rig: Rig, calls: int, error: type[Exception], **options) -> None:
    """As many calls at a time for a novel, each of which fails so."""

    async def one(index: int) -> None:
        with pytest.raises(error):
            await rig.ask(item=str(index), candidate=f"c{index % 2}", messages=NOVEL, **options)

    async with anyio.create_task_group() as tasks:
        for index in range(calls):
            tasks.start_soon(one, index)


@pytest.mark.parametrize("limit", [8, 64, 300])
async def test_of_many_calls_that_are_rejected_at_a_time_one_asks_again_and_the_others_go_by_that(limit: int) -> None:
    server = Watched(takes=0.2)
    rig = Rig(server, limit=limit)
    await rig.ask(max_tokens=50)
    await side_by_side(rig, 300, RejectedError)
    assert server.most_repeats_at_once == 1
    assert server.most_at_once <= limit
    assert server.repeats == [1]


async def test_a_model_that_takes_no_single_token_is_asked_for_one_only_once() -> None:
    server = Watched(takes=20, shortest=16)
    rig = Rig(server, limit=64)
    await rig.ask(max_tokens=50)
    await side_by_side(rig, 64, RejectedError)
    assert server.repeats == [1, 50]
    await fails_each_time(rig, MAX_FAILED_IN_A_ROW + 1, "c8", "c9")
    assert server.repeats == [1, 50, 50]
    assert server.most_repeats_at_once == 1


class Failing(Narrow):
    """Fails at novels with 500, and does something else with what it answered before: in full, or for one token."""

    def __init__(self, again: LLMError, *, most: int) -> None:
        super().__init__()
        self._again, self._most = again, most

    async def chat(self, request, *, timeout):
        answer = await super().chat(request, timeout=timeout)
        if len(self.requests) > 1 and (request.max_tokens or 99) <= self._most:
            raise self._again
        return answer


@pytest.mark.parametrize(
    ("again", "most"),
    [
        (RejectedError("the answer is too large for what we take"), 99),
        (RejectedError("the answer is too large for what we take", usage=Usage(100, 5000, 0)), 99),
        (ServerError("HTTP 500: the answer has no text", status=500), 1),
    ],
)
async def test_what_a_limit_of_ours_refuses_or_is_only_too_short_says_nothing_of_the_server(
    again: LLMError, most: int
) -> None:
    rig = Rig(Failing(again, most=most))
    await rig.ask(max_tokens=50)
    await fails_each_time(rig, 3 * MAX_FAILED_IN_A_ROW, "c8", "c9")


async def test_a_wait_for_limits_of_ours_is_no_silence_of_the_server() -> None:
    rig = Rig(server := Scripted())
    limits = Limits(rig.scheduler, requests_per_minute=1, longest_pause=60)
    rig.client = LLMClient(rig.roles, rig.scheduler, STEADY, 1, rig.records.append, limits=limits)
    await fail_often(rig, REJECTED)
    server.script[:] = [*[REJECTED] * 5, "fine"]  # each of them a minute after the one before
    assert (await rig.ask(index=99)).text == "fine"


@pytest.mark.parametrize(
    ("again", "takes"),
    [
        ("fine", 45.0),
        ("fine", 1000.0),
        (OverloadedError("HTTP 429", status=429, retry_after=20), 0.0),
        (UnreachableError("HTTP 502", status=502), 0.0),
    ],
)
async def test_a_server_that_is_slow_or_busy_with_what_it_answered_before_is_not_down(
    again: LLMError | str, takes: float
) -> None:
    server = Watched(again, takes=takes)
    rig = Rig(server, limit=64)
    await rig.ask()
    await side_by_side(rig, 60, RejectedError)
    assert server.repeats


async def test_what_is_asked_again_is_sent_only_if_it_can_be_paid() -> None:
    server = Watched()
    rig = Rig(server)
    await rig.ask()
    for index in range(2 * MAX_FAILED_IN_A_ROW):
        with pytest.raises(RejectedError):
            await rig.ask(index=index, messages=NOVEL, payer=payer(attempts=1)[1])
    assert server.repeats == []


async def test_answers_of_another_model_at_the_same_address_do_not_hide_that_one_is_rejected() -> None:
    class Ended(Scripted):
        async def chat(self, request, *, timeout):
            answer = await super().chat(request, timeout=timeout)
            if request.model == "strong" and len(self.requests) > 1:
                raise RejectedError("HTTP 400: the plan has ended", status=400)
            return answer

    server = Ended()
    rig = Rig(server)
    rig.client = LLMClient(
        {**rig.roles, "propose": Role(server, "strong")}, rig.scheduler, STEADY, 1, rig.records.append
    )
    await rig.ask("propose")
    for index in range(MAX_FAILED_IN_A_ROW):
        with pytest.raises(RejectedError):
            await rig.ask("propose", index=index)
        await rig.ask("r0", index=index)
    async with anyio.create_task_group() as others:
        others.start_soon(answered_for_ever, rig)
        with pytest.raises(BackendUnreachableError, match="model 'strong'"):
            await rig.ask("propose", index=99)
        others.cancel_scope.cancel()


async def answered_for_ever(rig: Rig) -> None:
    while True:
        await rig.ask("r0")
        await anyio.sleep(0.5)


async def test_embeddings_that_are_rejected_never_end_a_run() -> None:
    class Vectors(Scripted):
        asked = 0

        async def embed(self, request, *, timeout):
            self.asked += 1
            if self.asked > 1:
                raise RejectedError("HTTP 400: no embeddings in this plan", status=400)
            return EmbedReply(tuple((1.0,) for _ in request.texts), Usage(10, 0), model=request.model)

    server = Vectors()
    rig = Rig(server)
    scope = CallScope("novelty", "1", None, 0, 0)
    await rig.client.embed("r0", ["a text"], scope=scope)
    calls = 5 * MAX_FAILED_IN_A_ROW
    for _ in range(calls):
        with pytest.raises(RejectedError):
            await rig.client.embed("r0", ["a text"], scope=scope)
    assert server.asked == 1 + calls


async def test_a_call_that_waited_for_its_server_is_sent_once_more_when_that_is_back() -> None:
    """The repeat may be the first that is answered again, so that the call before it failed for the server's sake."""
    server = Scripted()
    rig = Rig(server)
    await fail_often(rig, REJECTED)
    server.script[:] = [*[REJECTED] * 4, "fine"]  # the call and its full repeat after one for one token, the call again
    assert (await rig.ask(index=98)).text == "fine"


async def test_nor_does_one_candidate_end_a_run_that_is_gone_on_with() -> None:
    server = Scripted(TOO_LONG)
    rig = Rig(server)
    rig.client.account.restore([Spending("r0", "m", "generate", Totals(requests=5, failed=2))])
    await fails_each_time(rig, 2 * FAILURES_BEFORE_GIVING_UP, "c9")
    with pytest.raises(BackendRefusedError, match="each of the first 21 calls"):
        await rig.ask(candidate="c10")


async def test_a_server_that_tells_its_models_and_answers_nobody_any_more_is_out_of_order_whoever_asks() -> None:
    server = Scripted()
    rig = Rig(server)
    await rig.ask()
    server.script[:] = [TOO_LONG]
    await fails_each_time(rig, MAX_FAILED_IN_A_ROW, "c9")
    with pytest.raises(BackendUnreachableError):
        await rig.ask(index=99, candidate="c9")


async def test_failures_that_are_to_be_paid_for_are_no_silence() -> None:
    """The server works, but its model's answers to these requests are of no use."""
    rig = Rig(Scripted())
    empty = ServerError("the answer has no text", usage=Usage(90, 20))
    await fail_often(rig, empty)
    with pytest.raises(ServerError):
        await rig.ask(index=99)


async def test_a_server_that_only_fails_is_told_as_silent() -> None:
    unanswered = Pulse()
    rig = Rig(Scripted())
    rig.client = LLMClient(rig.roles, rig.scheduler, STEADY, 1, rig.records.append, unanswered=unanswered)
    told: list[float] = []

    async def listen() -> None:
        await unanswered.wait()
        told.append(anyio.current_time())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await fail_often(rig, ServerError("HTTP 500", status=500))
        began = anyio.current_time()
        assert not told
        with pytest.raises(BackendUnreachableError):
            await rig.ask(index=99)
    assert told == [began]


async def test_silences_are_told() -> None:
    unanswered = Pulse()
    rig = Rig(Scripted(UnreachableError("reset"), ServerError("500"), "fine"))
    rig.client = LLMClient(rig.roles, rig.scheduler, STEADY, 1, rig.records.append, unanswered=unanswered)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.ask)
        await unanswered.wait()
        assert anyio.current_time() == 0


async def test_a_request_too_long_for_its_timeout_fails_alone() -> None:
    """Others are answered all the time, so the backend is never silent; without a bound this would go on for ever."""
    quick, endless = Scripted(takes=5), Scripted(takes=1000)

    class OneServer(Scripted):
        async def chat(self, request, *, timeout):
            return await (endless if request.max_tokens == 1000 else quick).chat(request, timeout=timeout)

    rig = Rig(OneServer(), timeout_seconds=50)

    async def others() -> None:
        for index in range(60):
            await rig.ask(index=index)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        with pytest.raises(UnreachableError, match="too slow"):
            await rig.ask(max_tokens=1000)
        tasks.cancel_scope.cancel()
    assert len(endless.requests) == 3


# Cancellation


@pytest.mark.parametrize("after", [1, 6, 12], ids=["waiting for a slot", "in flight", "backing off"])
async def test_a_cancelled_call_leaves_no_trace_and_no_slot(after) -> None:
    busy, transport = Scripted(takes=5), Scripted(ServerError("500"), takes=5)
    rig = Rig(busy, transport, limit=1, retry=RetryPolicy(base_seconds=30, max_seconds=30))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.ask, "r0")
        await anyio.sleep(0.1)
        with anyio.move_on_after(after) as scope:
            await rig.ask("r1")
    assert scope.cancelled_caught
    assert [record.role for record in rig.records] == ["r0"]
    stats = rig.scheduler.stats()
    assert (stats.in_flight, stats.waiting) == (0, 0)
    assert rig.client.account.totals().requests == 1


outcomes = st.sampled_from(
    ["fine", ServerError("500"), OverloadedError("429", retry_after=3), UnreachableError("reset"), RejectedError("400")]
)


@given(st.lists(st.tuples(st.lists(outcomes, min_size=1, max_size=4), st.none() | st.integers(0, 12)), max_size=8))
def test_every_call_that_finishes_is_reported_and_accounted_exactly_once(jumping_clock, calls) -> None:
    finished = []

    async def main() -> None:
        # Ending every script well keeps patience out of it.
        rig = Rig(*[Scripted(*script, "fine", takes=1) for script, _ in calls], limit=2)

        async def one(role, cancelled_after) -> None:
            with anyio.move_on_after(cancelled_after):
                with suppress(LLMError):
                    await rig.ask(role)
                finished.append(role)

        async with anyio.create_task_group() as tasks:
            for number, (_, cancelled_after) in enumerate(calls):
                tasks.start_soon(one, f"r{number}", cancelled_after)
        assert [record.role for record in rig.records] == finished
        totals = rig.client.account.totals()
        assert totals.requests == len(rig.records)
        assert totals.failed == sum(record.reply is None for record in rig.records)
        assert totals.retries == sum(record.attempts - 1 for record in rig.records)
        assert all((record.reply is None) != (record.error is None) for record in rig.records)
        assert rig.scheduler.stats().in_flight == 0

    anyio.run(main, backend_options=jumping_clock)


@pytest.mark.parametrize("error", [RejectedError("HTTP 400: no"), ServerError("HTTP 500: broken")])
async def test_a_role_of_which_every_call_fails_ends_the_run(error: LLMError) -> None:
    rig = Rig(Scripted("fine"), Scripted(error))
    await rig.ask("r0")
    for _ in range(FAILURES_BEFORE_GIVING_UP - 1):
        with pytest.raises(type(error)):
            await rig.ask("r1")
    with pytest.raises(
        BackendRefusedError, match=rf"^http://fake/v1: each of the first 10 calls of role 'r1' .*{error}"
    ):
        await rig.ask("r1")


# Checking before a run


async def test_check_passes_when_every_model_is_served() -> None:
    await Rig(Scripted(models=("m", "n")), Scripted()).client.check()


async def test_check_lists_what_is_served_instead() -> None:
    with pytest.raises(BackendRefusedError, match=r"http://fake/v1.*'m'.*'r1'.*qwen, llama"):
        await Rig(Scripted(), Scripted(models=("qwen", "llama"))).client.check()


@pytest.mark.parametrize(
    ("trouble", "raised", "said"),
    [
        (UnreachableError("connection refused"), BackendUnreachableError, "connection refused"),
        (ServerError("not JSON"), BackendUnreachableError, "not JSON"),
        (RefusedError("HTTP 401"), BackendRefusedError, "API key"),
    ],
)
async def test_check_says_what_is_wrong_with_a_backend(trouble, raised, said) -> None:
    with pytest.raises(raised, match=f"http://fake/v1.*{said}"):
        await Rig(Scripted(models=trouble)).client.check()


@pytest.mark.parametrize("status", [404, 405])
async def test_a_server_of_ours_has_a_list_of_models(status) -> None:
    with pytest.raises(BackendRefusedError, match="base URL"):
        await Rig(Scripted(models=RefusedError("HTTP", status=status))).client.check()


def remote(models, *, must_be_listed: bool = True, model: str = "gemini-2.5-flash") -> LLMClient:
    role = Role(Scripted(models=models), model, must_be_listed=must_be_listed, must_have_list=False)
    return LLMClient({"task": role}, Scheduler(1), RetryPolicy(), 0, lambda record: None)


async def test_a_model_that_is_not_listed_is_an_error_with_the_list_those_like_it_first() -> None:
    others = [f"m{number}" for number in range(30)]
    with pytest.raises(BackendRefusedError, match=r"'gemini-2.5-flash'.*serves gemini-2.5-flash-001, m0, .*11 more\."):
        await remote((*others, "gemini-2.5-flash-001")).check()


async def test_where_lists_may_be_incomplete_a_note_says_what_is_missing() -> None:
    notes: list[str] = []
    client = remote(("other",), must_be_listed=False)
    await client.check(notes.append)
    assert notes == ["http://fake/v1 does not list 'gemini-2.5-flash', the model of role 'task'; it serves other"]
    with capture_logs() as logs:
        await client.check()
    assert [(log["event"], log["note"]) for log in logs] == [("models.unknown", notes[0])]


@pytest.mark.parametrize("status", [404, 405])
async def test_a_remote_api_may_have_no_list_of_models(status) -> None:
    notes: list[str] = []
    await remote(RefusedError("HTTP: nothing here", status=status)).check(notes.append)
    assert len(notes) == 1
    assert notes[0].startswith("http://fake/v1 has no list of models")


async def test_an_address_that_lacks_a_part_is_told_with_the_right_one() -> None:
    trouble = WrongAddressError("there is no API at this address")
    with pytest.raises(BackendRefusedError, match=r"^http://fake/v1: there is no API at this address"):
        await remote(trouble).check()


async def test_a_remote_api_that_turns_us_away_is_an_error() -> None:
    with pytest.raises(BackendRefusedError, match="API key"):
        await remote(RefusedError("HTTP 401", status=401)).check()


@pytest.mark.parametrize(
    ("listed", "model"),
    [("models/gemini-2.5-flash", "gemini-2.5-flash"), ("llama3:latest", "llama3"), ("openai/*", "openai/gpt-5")],
)
async def test_other_ways_to_list_a_model_are_understood(listed: str, model: str) -> None:
    notes: list[str] = []
    await remote((listed,), model=model).check(notes.append)
    assert notes == []


async def test_check_does_not_wait_for_ever() -> None:
    class Hanging(Scripted):
        async def models(self) -> None:
            await anyio.sleep_forever()

    with pytest.raises(BackendUnreachableError, match="nothing came back in 30 s"):
        await Rig(Hanging()).client.check()


async def test_a_backend_without_an_address_is_named_by_its_class() -> None:
    class InMemory:
        async def models(self):
            return ()

    with pytest.raises(BackendRefusedError, match=r"^InMemory does not serve 'm'.*it serves nothing"):
        await Rig(InMemory()).client.check()
