"""What a person or Prometheus sees of a run agrees with its events."""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import pytest
from prometheus_client import generate_latest
from rich.console import Console

from flowevolve._util.json_types import JSON
from flowevolve._util.threads import noted
from flowevolve._util.waits import Wait
from flowevolve.core.budget import Budget
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.llm.scheduling.scheduler import SchedulerStats
from flowevolve.telemetry.logs import configure_logs, log_event
from flowevolve.telemetry.metrics import Metrics
from flowevolve.telemetry.progress import Lines, LiveTable, lines
from flowevolve.telemetry.run_figures import ProgressFigures
from tests.support.some_events import some_changes, some_event


def commit(seq: int, version: int, best: str, score: float) -> Event:
    changes = some_changes(add=best, status="confirmed", pool="main")
    return some_event(seq, "pool.commit", version=version, stage="update", best=best, best_score=score, changes=changes)


def proposed(seq: int) -> Event:
    """Work that has ended with a proposal."""
    return some_event(seq, "item.done", cost={"proposals": 1})


EVENTS = [
    some_event(0, "flow.open", flow=0),
    commit(1, 1, "c0", 0.2),
    some_event(2, "flow.close", flow=0),
    proposed(3),
    some_event(4, "item.done", outcome="discarded", reason="unchanged"),
    commit(5, 2, "c0", 0.2),
    commit(6, 3, "c2", 0.5),
    some_event(7, "item.taken", gap=2, stage="screen"),
    some_event(8, "item.done", stage="screen", outcome="discarded", reason="stale"),
    some_event(9, "run.stopping", reason="seconds"),
]


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


def requests(in_flight: int) -> SchedulerStats:
    return SchedulerStats(16, in_flight, 0, 16, 1.0)


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


def test_the_live_table_tells_the_time_and_of_silence_where_nothing_happens() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=140)
    with LiveTable(console) as progress:
        progress.event(some_event(0, "run.start"))
        for seconds in (1, 61):
            progress.tick(seconds, requests(12))
    output = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert "running, 61 s" in output
    assert "no answer for 60 s (12 requests under way)" in output


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
    assert re.search(r"waiting for .*hangs\(\) at line \d+ of .*test_telemetry.py, called \d+ s ago$", told[0])


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


def test_the_live_table_says_what_is_waited_for() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=140)
    with Wait("metric, train row [3]"), LiveTable(console) as progress:
        progress.tick(40, requests(0))
    output = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert "nothing new for 40 s, waiting for metric, train row [3], for 0 s" in output


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


def test_virtual_hours_are_not_told_by_the_half_minute() -> None:
    told: list[str] = []
    with lines(told.append, "virtual") as progress:
        for event in [commit(0, 1, "c0", 0.2), proposed(9999)]:
            progress.event(event)
    assert len(told) == 1


def drawn(events: Sequence[Event], calls: Sequence[CallRecord] = (), budget: Budget | None = None) -> str:
    """What a live table shows at the end."""
    console = Console(file=io.StringIO(), force_terminal=True, width=140)
    with LiveTable(console, budget) as progress:
        for call in calls:
            progress.call(call)
        for event in events:
            progress.event(event)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]  # a StringIO


def call(started: float, finished: float, error: str | None = None, *, cached: bool = False) -> CallRecord:
    request, scope = ChatRequest("m", (Message("user", "x"),)), CallScope("screen", "1", None, 0, 0)
    reply = None if error else ChatReply("y", Usage(1000, 70, 1), cached=cached)
    return CallRecord("task", scope, request, reply, error, 1, started, started, finished)


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


def waiting_events() -> list[Event]:
    sent = [some_event(n, "item.sent", item=f"1/{n}", stage="evaluate" if n else "screen") for n in range(4)]
    return [*sent, some_event(4, "item.taken", item="1/3", stage="evaluate")]


def test_the_live_table_says_what_waits_where() -> None:
    assert "evaluate 2, screen 1" in drawn(waiting_events())
    assert "waiting" not in drawn(EVENTS)


def test_the_live_table_shows_the_last_server_that_failed() -> None:
    assert "killed by signal 9" in drawn([some_event(1, "server.died", url="x", detail="killed by\nsignal 9")])


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


def test_metrics_count_items_and_calls() -> None:
    metrics = Metrics()
    scheduled = [
        some_event(10, "allocation.changed", stage="evaluate", by=1, workers=9, reason="x"),
        some_event(11, "admission.changed", limit=271, before=256, reason="x"),
        some_event(13, "server.load", running=7, waiting=1, cache_usage=None, prefix_hit_rate=0.75),
        some_event(14, "server.died", url="x", detail="y"),
        some_event(14, "item.done", cost={"rollouts": 6, "dollars": 0.25}),
        some_event(12, "evaluation.stopped", candidate="c3", reason="x", finished=3, saved=5),
    ]
    for event in [*EVENTS, *scheduled]:
        metrics.event(event)
    request = ChatRequest("m", (Message("user", "x"),))
    scope = CallScope("screen", "1", None, 0, 0)
    metrics.call(CallRecord("task", scope, request, ChatReply("y", Usage(5, 7, 4)), None, 1, 0.0, 1.0, 3.0))
    cached = ChatReply("y", Usage(5, 7, 1), cached=True)
    metrics.call(CallRecord("task", scope, request, cached, None, 0, 0.0, 1.0, 1.0))
    text = generate_latest(metrics.registry).decode()
    assert 'flowevolve_items_total{outcome="discarded",stage="screen"} 1.0' in text
    assert "flowevolve_proposals_total 1.0" in text
    assert "flowevolve_unchanged_total 1.0" in text
    assert "flowevolve_pool_version 3.0" in text
    assert 'flowevolve_candidates_total{status="confirmed"} 3.0' in text
    assert 'flowevolve_workers{stage="evaluate"} 9.0' in text
    assert "flowevolve_request_limit 271.0" in text
    assert "flowevolve_server_running_requests 7.0" in text
    assert "flowevolve_server_waiting_requests 1.0" in text
    assert "flowevolve_server_prefix_hit_ratio 0.75" in text
    assert "flowevolve_server_cache_usage" not in text
    assert "flowevolve_server_deaths_total 1.0" in text
    assert "flowevolve_evaluations_stopped_total 1.0" in text
    assert 'flowevolve_llm_tokens_total{kind="completion",role="task"} 7.0' in text
    assert 'flowevolve_llm_cached_tokens_total{role="task"} 4.0' in text
    assert "flowevolve_spent_dollars_total 0.25" in text
    assert "flowevolve_rollouts_total 6.0" in text
    assert 'flowevolve_llm_calls_total{result="ok",role="task",stage="screen"} 1.0' in text
    assert 'flowevolve_llm_calls_total{result="cached",role="task",stage="screen"} 1.0' in text
    assert 'flowevolve_llm_latency_seconds_count{role="task"} 1.0' in text


def shown_by(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_after_a_resume_metrics_go_on_from_what_the_run_came_to() -> None:
    metrics = Metrics()
    metrics.event(some_event(0, "run.resumed", version=5, best="c2", best_score=0.7, flows=3))
    metrics.event(some_event(1, "flow.close", flow=0))
    text = shown_by(metrics)
    assert "flowevolve_best_score 0.7" in text
    assert "flowevolve_pool_version 5.0" in text
    assert "flowevolve_open_flows 2.0" in text


def test_what_is_not_known_has_no_metric() -> None:
    metrics = Metrics()
    metrics.event(some_event(0, "run.resumed"))
    metrics.event(some_event(1, "item.done", cost={"rollouts": 1}))
    for name in ("best_score", "request_limit", "program_slots", "spent_dollars"):
        assert name not in shown_by(metrics)


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


def test_the_live_table_shows_a_pause() -> None:
    assert "paused for 3 s" in drawn([some_event(1, "run.paused"), some_event(4, "flow.open")])


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
