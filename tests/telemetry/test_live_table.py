"""The live table of a run: what its rows say."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import pytest
from rich.console import Console

from flowevolve._util.json_types import JSON
from flowevolve._util.waits import Wait
from flowevolve.core.budget import Budget
from flowevolve.core.model import OverloadedError
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.telemetry.progress import LiveTable, lines
from tests.support.run_events import EVENTS, call, drawn, requests, waiting_events
from tests.support.some_events import some_event


def test_the_live_table_tells_the_time_and_of_silence_where_nothing_happens() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=140)
    with LiveTable(console) as progress:
        progress.event(some_event(0, "run.start"))
        for seconds in (1, 61):
            progress.tick(seconds, requests(12))
    output = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert "running, 61 s" in output
    assert "no answer for 60 s (12 requests under way)" in output


def test_the_live_table_says_what_holds_requests_back() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=140)
    limits = Limits(Scheduler(1))
    with limits.repeating(OverloadedError("slow down", status=429)), LiveTable(console) as progress:
        progress.watch(Traffic((), limits, None))
        progress.tick(1, requests(0))
    output = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert "1 request held back by rate limits (the server has refused 1 so far)" in output


def test_the_live_table_says_what_is_waited_for() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=140)
    with Wait("metric, train row [3]"), LiveTable(console) as progress:
        progress.tick(40, requests(0))
    output = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert "nothing new for 40 s, waiting for metric, train row [3], for 0 s" in output


def test_the_live_table_draws() -> None:
    output = drawn(EVENTS)
    assert "0.5000 (c2); seed 0.2000" in output
    assert "budget" not in output
    assert "requests" not in output


def test_the_live_table_may_be_drawn_in_another_thread_while_calls_finish(
    request: pytest.FixtureRequest,
) -> None:
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)  # seconds: threads take turns within a drawing
    progress = LiveTable(Console(file=io.StringIO(), force_terminal=True, width=140))

    def draw_often() -> None:
        for _ in range(20):
            with progress:
                pass

    with ThreadPoolExecutor(1) as threads:
        drawing = threads.submit(draw_often)
        for number in count():
            if drawing.done():
                break
            progress.call(call(number / 100, number / 100 + 1))
        drawing.result()


def test_nothing_is_named_as_the_best_before_there_is_one() -> None:
    output = drawn(EVENTS[:1])
    assert "-; seed -" in output
    assert "1 flow open" in output
    assert "None" not in output


def test_the_live_table_says_what_is_used_of_the_budget() -> None:
    done = some_event(30, "item.done", cost={"proposals": 3, "tokens": 500, "dollars": 0.25})
    budget = Budget(minutes=2, proposals=12, tokens=1000, target_score=0.9)
    said = "25% of the time (1.5 min left), 25% of 12 proposals, 50% of 1,000 tokens, until a score of 0.9"
    assert said in drawn([done], budget=budget)


def test_after_a_resume_what_was_spent_before_counts() -> None:
    before: JSON = {"proposals": 6, "tokens": 750_000, "dollars": 0.25, "evaluations": 9}
    resumed = some_event(10, "run.resumed", proposals=6, spent=before)
    done = some_event(30, "item.done", cost={"evaluations": 1, "tokens": 1_500_000})
    budget = Budget(minutes=2, proposals=12, tokens=3_000_000, evaluations=40)
    said = "25% of the time (1.5 min left), 50% of 12 proposals, 75% of 3,000,000 tokens, 25% of 40 evaluations"
    output = drawn([resumed, done], [call(0, 1)], budget)
    assert said in output
    assert "1 (0 failed), about 1 in flight, since the resume" in output
    assert "1,000 prompt, 70 completion, since the resume" in output
    assert "0.2500" in output
    told: list[str] = []
    with lines(told.append, "real", budget) as progress:
        for event in [resumed, done]:
            progress.event(event)
        progress.call(call(0, 1))
        progress.event(some_event(60, "flow.open"))
    assert f"used {said}" in told[0]
    assert "tokens 1,070 since the resume" in told[1]


def test_the_live_table_tells_of_requests_tokens_and_dollars() -> None:
    done = some_event(30, "item.done", cost={"tokens": 500, "dollars": 0.25})
    output = drawn([done], [call(0, 6, "500: out\nof order"), call(0, 10), call(0, 10)])
    assert "3 (1 failed), about 3 in flight" in output  # 26 seconds of requests in 10
    assert "2,000 prompt, 140 completion" in output
    assert "0.2500" in output
    assert "500: out of order" in output


def test_the_live_table_says_what_waits_where() -> None:
    assert "evaluate 2, screen 1" in drawn(waiting_events())
    assert "waiting" not in drawn(EVENTS)


def test_the_live_table_shows_the_last_server_that_failed() -> None:
    assert "killed by signal 9" in drawn([some_event(1, "server.died", url="x", detail="killed by\nsignal 9")])


def test_a_long_failure_is_cut_between_words() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        progress.call(call(0, 5, f"500: {'overloaded ' * 40}"))
        progress.event(some_event(30, "flow.open"))
    said = told[0].partition("last failure: ")[2]
    assert said.endswith("overloaded …")
    assert len(said) <= 161


def test_requests_that_are_in_flight_are_those_of_the_latest_tick_where_there_are_any() -> None:
    told: list[str] = []
    with lines(told.append, "real") as progress:
        progress.event(some_event(0, "run.start"))
        for second in range(1, 40):
            progress.call(call(second - 1, second))
            progress.tick(second, requests(7))
        for second in range(40, 100):
            progress.tick(second, requests(0))
    assert [line.partition("in flight ")[2].partition("  ")[0] for line in told] == ["7", "0", "0"]


def test_requests_of_long_ago_are_not_in_flight() -> None:
    assert "about 1 in flight" in drawn(EVENTS, [*(call(0, 10) for _ in range(9)), call(70, 100)])


def test_the_live_table_shows_the_last_rollout_that_failed() -> None:
    failed = some_event(1, "rollout.failed", example="a", reason="the task failed with KeyError")
    assert "the task failed with KeyError" in drawn([failed])


def test_the_live_table_shows_a_pause() -> None:
    assert "paused for 3 s" in drawn([some_event(1, "run.paused"), some_event(4, "flow.open")])
