"""What calls and failed attempts are paid for, and what is estimated where a server does not say it."""

from dataclasses import replace

import pytest

from flowevolve.core.budget import OverBudgetError
from flowevolve.core.model import ServerError, UnreachableError, Usage
from flowevolve.llm.client.accounting import Price
from tests.support.scripted_llm import Rig, Scripted, payer

pytestmark = pytest.mark.anyio


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
