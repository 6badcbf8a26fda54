"""Which flow is opened next."""

from __future__ import annotations

import pytest

from flowevolve.core.item import Ticket
from flowevolve.engine.tickets import TicketQueue
from tests.support.triggers import EveryCommits

SHIFT, ADVISE = EveryCommits("shift", "write", 10), EveryCommits("advise", "update", 50)


@pytest.fixture
def tickets() -> TicketQueue:
    tickets = TicketQueue()
    tickets.is_open = True
    return tickets


def opened(tickets: TicketQueue, times: int) -> list[Ticket]:
    return [tickets.ticket(tickets.next()) for _ in range(times)]


def test_ordinary_and_triggered_flows_take_turns(tickets: TicketQueue) -> None:
    assert opened(tickets, 2) == [Ticket(None, 0), Ticket(None, 1)]
    assert tickets.fire(ADVISE, by_ordinary_flow=True)
    assert tickets.fire(SHIFT, by_ordinary_flow=True)
    wanted = [Ticket("advise", 0), Ticket(None, 2), Ticket("shift", 0), Ticket(None, 3), Ticket(None, 4)]
    assert opened(tickets, 5) == wanted


def test_without_ordinary_work_triggered_flows_follow_each_other(tickets: TicketQueue) -> None:
    for trigger in (ADVISE, SHIFT):
        tickets.fire(trigger, by_ordinary_flow=True)
    tickets.out_of_work = True
    assert opened(tickets, 2) == [Ticket("advise", 0), Ticket("shift", 0)]
    assert not tickets.ready


def test_a_trigger_has_one_flow_waiting(tickets: TicketQueue) -> None:
    assert tickets.fire(SHIFT, by_ordinary_flow=False)
    assert not tickets.fire(SHIFT, by_ordinary_flow=True)
    tickets.drop(SHIFT)
    assert tickets.next() is None
    assert tickets.fire(SHIFT, by_ordinary_flow=False)


def test_before_flows_are_opened_no_trigger_counts(tickets: TicketQueue) -> None:
    tickets.is_open = False
    assert not tickets.fire(SHIFT, by_ordinary_flow=True)


def test_out_of_work_a_trigger_counts_if_an_ordinary_flow_set_it_off(tickets: TicketQueue) -> None:
    tickets.out_of_work = True
    assert not tickets.fire(SHIFT, by_ordinary_flow=False)
    assert tickets.fire(SHIFT, by_ordinary_flow=True)
    assert tickets.ready


def test_who_had_nothing_to_do_is_asked_again_after_a_change(tickets: TicketQueue) -> None:
    ready: list[bool] = []
    for since in (0, 7):  # another that was asked at another time does not undo it
        tickets.hold(since)
        ready.append(tickets.ready)
    tickets.change()
    ready.append(tickets.ready)
    tickets.hold(0)  # there was a change since it was asked
    ready.append(tickets.ready)
    assert (ready, tickets.changes) == ([False, False, True, True], 1)


def test_an_interrupted_run_goes_on_with_the_numbers_and_triggers_that_it_had(tickets: TicketQueue) -> None:
    tickets.restore({None: 3, "shift": 2}, [SHIFT])
    assert opened(tickets, 2) == [Ticket("shift", 2), Ticket(None, 3)]
