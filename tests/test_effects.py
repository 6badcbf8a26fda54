"""What stages do to a run, where the disk is slow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio

from flowevolve import clock
from flowevolve.config import parse_config
from flowevolve.events import Event
from flowevolve.llm.calls import CallRecord
from flowevolve.result import Result
from flowevolve.run import Given, Watchers, carry_out, make_plan
from flowevolve.tasks.house_style import house_style_task, make_rows


class SlowDisk:
    """Keeps nothing, and takes its time about it."""

    path = Path()

    def event(self, event: Event) -> None:
        pass

    def call(self, record: CallRecord) -> None:
        pass

    def begin(self, origin: float) -> None:
        pass

    async def settled(self) -> None:
        await anyio.sleep(5)

    def write_result(self, result: Mapping[str, object]) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_reply_is_charged_though_its_work_is_cancelled_before_the_reply_is_on_disk() -> None:
    config = parse_config(
        {"clock": "virtual", "racing": {"policy": "confidence", "least": 4}, "budget": {"proposals": 12}}, "test"
    )
    plan = make_plan(config, Given(house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=60, seed=1))))
    calls: list[CallRecord] = []

    async def go() -> Result:
        return await carry_out(plan, SlowDisk, Watchers(calls=(calls.append,)), None)

    result = clock.run(go, clock="virtual")
    assert result.report.racing.stopped
    assert result.report.spent.tokens == sum(call.reply.usage.total_tokens for call in calls if call.reply is not None)
