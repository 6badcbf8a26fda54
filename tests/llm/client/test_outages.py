"""A server that answered before and then only fails or rejects: it is out of order, or the requests are at fault."""

import anyio
import pytest

from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError
from flowevolve._util.tasks import Pulse
from flowevolve.core.calls import CallScope
from flowevolve.core.model import (
    EmbedReply,
    LLMError,
    Message,
    OverloadedError,
    RejectedError,
    ServerError,
    UnreachableError,
    Usage,
)
from flowevolve.llm.client.accounting import Spending, Totals
from flowevolve.llm.client.client import FAILURES_BEFORE_GIVING_UP, LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.outages import MAX_FAILED_IN_A_ROW
from flowevolve.llm.scheduling.rate_limits import Limits
from tests.support.scripted_llm import ASK, STEADY, Rig, Scripted, payer

pytestmark = pytest.mark.anyio


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
NOVEL = [Message("user", "a novel")]


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
        {**rig.roles, "vectors": Model(server, "vectors")}, rig.scheduler, STEADY, 1, rig.records.append
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
        {**rig.roles, "propose": Model(server, "strong")}, rig.scheduler, STEADY, 1, rig.records.append
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
