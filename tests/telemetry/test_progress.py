"""What is printed and logged of a run as it goes on."""

from __future__ import annotations

import logging
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from flowevolve._util.threads import noted
from flowevolve._util.waits import Wait
from flowevolve.core.budget import Budget
from flowevolve.core.events import Event
from flowevolve.core.model import OverloadedError, ServerError
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.telemetry.logs import configure_logs, log_event
from flowevolve.telemetry.metrics import Metrics
from flowevolve.telemetry.progress import Lines, lines
from flowevolve.telemetry.run_figures import ProgressFigures
from tests.support.run_events import EVENTS, call, commit, drawn, proposed, requests, shown_by, waiting_events
from tests.support.some_events import some_changes, some_event


def test_the_tally_adds_up() -> None:
    figures = ProgressFigures()
    for event in EVENTS:
        figures.take(event)
    assert (figures.proposals, figures.accepted, figures.version, figures.stale, figures.open_flows) == (1, 2, 3, 1, 0)
    assert figures.unchanged == 1
    assert (figures.seed_score, figures.best_score, figures.best, figures.stopping) == (0.2, 0.5, "c2", "seconds")


def test_plain_lines_tell_what_is_new() -> None:
    lines: list[str] = []
    with Lines(lines.append) as progress:
        for event in EVENTS:
            progress.event(event)
    assert [line.split("s  ")[1].split()[0] for line in lines] == ["best", "best", "stopping:"]


def test_a_best_candidate_that_is_no_better_is_not_told() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        for event in [commit(0, 1, "c0", 0.2), commit(1, 2, "c1", 0.2), commit(2, 3, "c2", 0.3)]:
            progress.event(event)
    assert [line.split("  best ")[1].split("  ")[0] for line in told] == ["0.2000 (c0)", "0.3000 (c2)"]


def test_of_a_best_candidate_with_another_score_it_is_said_that_it_was_measured_again() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        for event in [commit(0, 1, "c0", 0.2), commit(1, 2, "c1", 0.9), commit(2, 3, "c1", 0.8), proposed(40)]:
            progress.event(event)
    bests = [line.split("  best ")[1].split("  ")[0] for line in told]
    assert bests == ["0.2000 (c0)", "0.9000 (c1)", "0.8000 (c1) measured again", "0.8000 (c1)"]


def test_a_run_in_which_nothing_gets_better_is_heard_of_every_half_minute() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        for event in [commit(0, 1, "c0", 0.2), *(proposed(seconds) for seconds in range(1, 100, 7))]:
            progress.event(event)
    assert [line.split()[0] for line in told] == ["0.0", "36.0", "71.0"]
    assert "best 0.2000 (c0)  version 1  proposals 6" in told[1]


def test_a_run_in_which_nothing_happens_is_heard_of_every_half_minute_and_says_that_no_answer_comes() -> None:
    told: list[str] = []
    with lines(told.append, "real", Budget(minutes=5)) as progress:
        progress.event(some_event(0, "run.start"))
        for seconds in range(1, 100):
            progress.tick(seconds, requests(12))
    assert [line.split()[0] for line in told] == ["30.0", "60.0", "90.0"]
    assert told[1].endswith("used 20% of the time (4.0 min left)  no answer for 59 s (12 requests under way)")


def test_after_an_answer_silence_is_counted_anew_and_where_no_answer_is_awaited_not_at_all() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        for seconds in range(1, 100):
            progress.tick(seconds, requests(0 if seconds > 45 else 3))
            if seconds == 45:
                progress.call(call(0, 45))
    assert ["no answer" in line for line in told] == [True, False, False]


def test_a_reply_from_the_response_cache_is_no_answer_of_the_server() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        for seconds in range(1, 100):
            progress.tick(seconds, requests(3))
            progress.call(call(seconds, seconds, cached=True))
    assert told[-1].endswith("no answer for 89 s (3 requests under way)")


def test_where_the_last_call_was_cancelled_no_answer_is_awaited() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        for seconds in range(1, 100):
            progress.tick(seconds, requests(1 if seconds < 25 else 0))
    assert ["no answer" in line for line in told] == [False] * 3


def test_what_holds_requests_back_is_told_while_it_does() -> None:
    told: list[str] = []
    limits = Limits(Scheduler(1))
    with lines(told.append, "real") as progress:
        progress.watch(Traffic((), limits, None))
        with (
            limits.repeating(OverloadedError("slow down", status=429)),
            limits.repeating(ServerError("oops", status=500)),
        ):
            progress.tick(31, requests(0))
        progress.tick(62, requests(0))
    held = (
        "  1 request held back by rate limits (the server has refused 1 so far), "
        "1 request waiting to be sent again after errors of the server (1 so far)"
    )
    assert [held in line for line in told] == [True, False]


def ticked(seconds: int) -> list[str]:
    """The lines of a run of which nothing was heard after its start, in which no request is under way."""
    told: list[str] = []
    with lines(told.append, "real") as progress:
        progress.event(some_event(0, "run.start"))
        for second in range(seconds):
            progress.tick(second + 1, requests(0))
    return told


def test_where_nothing_happens_and_no_request_is_under_way_it_is_said_what_is_waited_for() -> None:
    with Wait("metric, train row 12"), Wait("metric, train row 3"):
        told = ticked(60)
    assert re.search(r"  nothing new for 60 s, waiting for metric, train row 12, for \d+ s \(and 1 more\)$", told[1])
    assert ticked(60)[1].endswith("  nothing new for 60 s")


def test_what_waits_for_something_else_itself_is_not_named() -> None:
    with Wait("program, train row 2") as program, Wait("program, train row 3"), program.suspended():
        told = ticked(60)
    assert re.search(r"  nothing new for 60 s, waiting for program, train row 3, for \d+ s$", told[1])


def test_a_function_in_a_thread_is_named_where_nothing_else_is_known() -> None:
    begun, over = threading.Event(), threading.Event()

    def hangs() -> None:
        begun.set()
        over.wait()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(noted, hangs)
        begun.wait()
        told = ticked(30)
        over.set()
    assert re.search(r"waiting for .*hangs\(\) at line \d+ of .*test_progress.py, called \d+ s ago$", told[0])


def test_a_paused_run_and_one_in_which_something_happens_do_not_stand_still() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        progress.event(some_event(0, "run.start"))
        for second in range(1, 60):
            progress.tick(second, requests(0))
            if second % 20 == 0:
                progress.event(proposed(second))
        progress.event(some_event(60, "run.paused"))
        progress.tick(120, requests(0))
    assert len(told) == 3
    assert "nothing new" not in "".join(told)


def perfect(seq: int) -> Event:
    return some_event(seq, "item.done", stage="generate", outcome="discarded", reason="perfect minibatch")


def test_that_nothing_is_left_to_improve_is_told_once_and_then_with_the_figures_until_something_is_proposed() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        for event in [*map(perfect, range(29)), some_event(30, "flow.open"), proposed(31), some_event(60, "flow.open")]:
            progress.event(event)
    once, with_figures, after = told
    assert once.endswith("s  nothing to improve in the last 10 minibatches: all scores in them are perfect")
    assert "nothing to improve in the last 29 minibatches" in with_figures
    assert "nothing to improve" not in after
    assert "nothing to improve in the last 12 minibatches" in drawn([*map(perfect, range(12))])
    assert "nothing to improve" not in drawn([*map(perfect, range(9))])


def flow_that_ends_at(seq: int, stage: str) -> list[Event]:
    return [some_event(seq, "item.done", stage=stage), some_event(seq, "flow.close", flow=seq)]


def test_of_a_run_whose_flows_came_to_nothing_it_is_told_at_which_stage() -> None:
    before = [each for seq in range(9) for each in flow_that_ends_at(seq, "screen")]
    last = [each for seq in range(11, 19) for each in flow_that_ends_at(seq, "propose" if seq % 3 else "screen")]
    events = [*before, proposed(10), *last, some_event(20, "run.stopping", reason="unproductive")]
    told: list[str] = []
    with lines(told.append, "virtual") as progress:
        for event in events:
            progress.event(event)
    assert "stopping: unproductive flows, most of which ended at 'propose';" in told[-1]
    assert "stopping: unproductive flows, most of which ended at 'propose'," in drawn(events)
    spread = [each for seq, stage in enumerate("aabcd", 11) for each in flow_that_ends_at(seq, stage)]
    stopping = some_event(20, "run.stopping", reason="unproductive")
    assert "stopping: unproductive flows, which ended at several stages" in drawn([*spread, stopping])


def test_the_test_on_held_out_examples_is_told_of_at_once_and_every_half_minute() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        for event in EVENTS:
            progress.event(event)
        ended = len(told)
        for finished in (103, 104, 125, 134, 135):
            progress.call(call(100, finished, stage="held_out"))
    lasted = [line.split(" s  ") for line in told[ended:]]
    assert [said for _, said in lasted] == [
        "scoring the first and the best candidate on the test examples: 1 call finished",
        "scoring the first and the best candidate on the test examples: 4 calls finished",
    ]
    assert float(lasted[1][0]) - float(lasted[0][0]) == 31


def test_virtual_hours_are_not_told_by_the_half_minute() -> None:
    told: list[str] = []
    with lines(told.append, "virtual") as progress:
        for event in [commit(0, 1, "c0", 0.2), proposed(9999)]:
            progress.event(event)
    assert len(told) == 1


def test_plain_lines_tell_all_that_the_table_does() -> None:
    told: list[str] = []
    with lines(told.append, "real", Budget(minutes=2, tokens=1000)) as progress:
        for each in [call(0, 5), call(0, 10, "500: out\nof order")]:
            progress.call(each)
        rewritten = some_event(5, "candidate.proposed", operator="reflect")
        done = some_event(30, "item.done", cost={"proposals": 1, "tokens": 500, "dollars": 0.25})
        for event in [*waiting_events(), rewritten, done, some_event(61, "flow.open")]:
            progress.event(event)
    first, second = told
    for said in (
        "proposals 1 (2.0/min)",
        "used 25% of the time (1.5 min left), 50% of 1,000 tokens",
        "in flight 2",
        "tokens 1,070",
        "dollars 0.2500",
        "waiting evaluate 2, screen 1",
    ):
        assert said in first
    assert first.endswith("last failure: 500: out of order")
    assert "last failure" not in second


def test_a_pause_is_told_until_it_is_over_or_the_run_is_gone_on_with() -> None:
    metrics, told = Metrics(), list[str]()
    with lines(told.append, "real") as progress:
        for event in [
            commit(0, 1, "c0", 0.2),
            some_event(5, "run.steered", by="op", act={"act": "pause"}),
            some_event(5, "run.paused"),
            commit(17, 2, "c1", 0.3),
            some_event(18, "run.unpaused"),
            commit(19, 3, "c2", 0.4),
            some_event(20, "run.paused"),
            commit(50, 4, "c3", 0.5),
        ]:
            metrics.event(event)
            progress.event(event)
        assert "flowevolve_paused 1.0" in shown_by(metrics)
        for event in [some_event(51, "run.resumed"), commit(52, 5, "c4", 0.6)]:
            metrics.event(event)
            progress.event(event)
    assert "flowevolve_paused 0.0" in shown_by(metrics)
    paused = [line.partition("paused ")[2].partition("  ")[0] for line in told]
    assert paused == ["", "for 12 s by op", "", "for 30 s", ""]


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("run.failed", False),
        ("rollout.failed", False),
        ("server.gave_up", True),
        ("run.start", False),
        ("item.sent", False),
    ],
)
def test_only_what_a_person_should_notice_is_logged(kind: str, shown: bool, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(logging.WARNING)
    log_event(some_event(1, kind))
    assert (kind in capsys.readouterr().err) == shown


def test_copies_and_what_is_evolved_beside_are_not_counted_as_accepted() -> None:
    figures = ProgressFigures()
    figures.take(commit(0, 1, "c0", 0.2))
    for seq, (operator, pool) in enumerate(
        (("migrate", "main"), ("meta", "prompts"), ("seed", "main"), ("explore", "main")), 5
    ):
        changes = some_changes(add="c1", status="confirmed", operator=operator, pool=pool)
        figures.take(some_event(seq, "pool.commit", version=seq, stage="update", changes=changes, best_score=0.5))
    assert figures.accepted == 1
