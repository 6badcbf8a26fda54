"""Replies that the limit of tokens cuts off are counted by role, and whoever sees the run or its result is told."""

from __future__ import annotations

import io
import json
from functools import partial
from html import escape
from pathlib import Path

import pytest
from rich.console import Console

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.event_kinds import CandidateProposed, ReplyUnparsable
from flowevolve.core.model import ChatReply
from flowevolve.runner.run import Watchers, run
from flowevolve.telemetry.progress import Lines
from flowevolve.telemetry.summary import summarize
from tests.runner.test_watcher_errors import TABLE

CUT = {**TABLE, "llm": {"backend": "sim", "roles": {"reflection": {"max_tokens": 60}}}, "budget": {"seconds": 70}}


def run_of(table: dict[str, object], out: Path | None = None, watchers: Watchers | None = None) -> fe.Result:
    return clock.run(partial(run, parse_config(table, "test"), out=out, watchers=watchers), clock="virtual")


def test_they_are_told_while_the_run_goes_on_of_its_result_and_in_the_summary(tmp_path: Path) -> None:
    told: list[str] = []
    progress = Lines(told.append)
    result = run_of(CUT, tmp_path / "run", Watchers((progress.event,), (progress.call,)))
    count = result.cut_replies["reflection"]
    assert 0 < count.cut <= count.of
    said = f"{count.cut:,} of {count.of:,} replies in role 'reflection' were cut by the limit of tokens"
    assert said in repr(result)
    assert escape(said) in result._repr_html_()
    assert "replies in role 'reflection' were cut by the limit of tokens" in "".join(told)
    assert json.loads((tmp_path / "run" / "result.json").read_text())["llm"]["cut_replies"]["reflection"] == {
        "cut": count.cut,
        "of": count.of,
    }
    assert fe.Result.load(tmp_path / "run").cut_replies == result.cut_replies
    shown = io.StringIO()
    Console(file=shown, width=300).print(summarize(result.to_json()))
    assert f"{said}: raise llm.roles.reflection.max_tokens" in shown.getvalue()


def test_where_none_was_cut_nothing_is_said() -> None:
    result = run_of(TABLE)
    assert result.cut_replies == {}
    assert "cut" not in repr(result)


def test_a_text_that_was_cut_is_not_taken_and_a_run_without_any_other_names_the_limit() -> None:
    """The simulator's reflections have a fenced text, which 60 tokens cut off or leave nothing of."""
    events: list[fe.Event] = []
    table = {**CUT, "budget": {"proposals": 50}}
    with pytest.raises(fe.FruitlessError, match=r"break off.*raise llm\.roles\.reflection\.max_tokens"):
        run_of(table, watchers=Watchers((events.append,)))
    proposed = [event.body for event in events if isinstance(event.body, CandidateProposed)]
    assert [each.operator for each in proposed] == ["seed"]
    unread = [event.body for event in events if isinstance(event.body, ReplyUnparsable)]
    assert {each.reason for each in unread} == {"incomplete"}
    assert all("it breaks off, as it reached the limit of tokens" in each.error for each in unread)


def test_those_from_before_an_interrupt_count_as_well(tmp_path: Path) -> None:
    more = {"clock": "real", "budget": {"seconds": 120}, "stopping": {"fruitless": 1000}}
    out, config = tmp_path / "run", parse_config({**CUT, **more}, "test")
    calls: list[CallRecord] = []

    async def cut_off() -> None:
        async with fe.open_run(config, out=out, watchers=Watchers(calls=(calls.append,))) as engine:
            async for event in engine.events():
                if event.kind == "reply.unparsable":
                    engine.cancel()

    clock.run(cut_off, clock="virtual")
    assert any(call.role == "reflection" for call in calls)
    told: list[str] = []
    progress = Lines(told.append)
    watchers = Watchers((progress.event,), (calls.append, progress.call))
    result = clock.run(partial(fe.resume, out, watchers=watchers), clock="virtual")
    replies = [call.reply for call in calls if call.role == "reflection" and isinstance(call.reply, ChatReply)]
    assert result.cut_replies["reflection"] == (sum(reply.was_cut for reply in replies), len(replies))
    assert "were cut by the limit of tokens since the resume" in "".join(told)
