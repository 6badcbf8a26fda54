"""Replies without a text are counted by role, and whoever sees the run or its result is told."""

from __future__ import annotations

import io
import json
from functools import partial
from html import escape
from pathlib import Path
from shutil import copytree

import anyio
from rich.console import Console

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.core.model import ChatReply, ChatRequest, Usage
from flowevolve.runner.run import Watchers
from flowevolve.telemetry.progress import Lines
from flowevolve.telemetry.summary import summarize
from tests.support.command import flowevolve

CONFIG = fe.Config.model_validate(
    {
        "llm": {"backend": f"{__name__}:Mute", "model": "mute"},
        "task": {"name": "house_style"},
        "clock": "virtual",
        "budget": {"seconds": 100},
    }
)


class Mute:
    """A model that says nothing every tenth time."""

    in_process = True

    def __init__(self) -> None:
        self.asked = 0

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        await anyio.sleep(1)
        self.asked += 1
        text = " \n" if self.asked % 10 == 0 else f"```\nA rule of {self.asked} words.\n```"
        return ChatReply(text, Usage(5, 5), model=request.model)

    async def models(self) -> tuple[str, ...]:
        return ("mute",)

    async def aclose(self) -> None:
        """Nothing is open."""


def test_they_are_told_while_the_run_goes_on_in_its_result_and_by_every_command(tmp_path: Path) -> None:
    told: list[str] = []
    progress = Lines(told.append)
    watchers = Watchers((progress.event,), (progress.call,))
    out = tmp_path / "done"
    result = clock.run(partial(fe.run, CONFIG, out=out, watchers=watchers), clock="virtual")
    count = result.empty_replies["task"]
    assert 0 < count.empty < count.of
    said = f"{count.empty:,} of {count.of:,} replies in role 'task' were empty"
    assert said in repr(result)
    assert escape(said) in result._repr_html_()
    assert "replies in role 'task' were empty" in "".join(told)
    assert fe.Result.load(out).empty_replies == result.empty_replies
    shown = io.StringIO()
    Console(file=shown, width=300).print(summarize(result.to_json()))
    assert f"{said}: most often the server took the whole answer for thinking" in shown.getvalue()
    copytree(out, tmp_path / "cut")
    (tmp_path / "cut" / "result.json").unlink()
    lines = flowevolve("status", "cut", "done", cwd=tmp_path).stdout.splitlines()
    assert [f"{run}: {said}" in lines for run in ("cut", "done")] == [True, True]
    told_as_json = json.loads(flowevolve("status", "cut", "done", "--json", cwd=tmp_path).stdout)
    assert [each["empty_replies"]["task"] for each in told_as_json] == [count._asdict()] * 2
    assert said in flowevolve("report", "cut", cwd=tmp_path).stdout


def test_a_reply_that_is_cut_before_its_text_begins_counts_as_cut_alone() -> None:
    assert not ChatReply("", finish_reason="length").is_empty
    assert not ChatReply("-").is_empty
    assert ChatReply("\n ", thinking="All of it is thought.").is_empty
