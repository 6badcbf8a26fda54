"""Scheduling as a configuration asks for it, in whole runs on the virtual clock."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from flowevolve._util import clock
from flowevolve._util.json_types import JSON
from flowevolve.config.run import parse_config
from flowevolve.core.events import Event
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run

Changes = list[Mapping[str, JSON]]


def scheduled(**scheduler: object) -> tuple[Result, Changes]:
    """A run on a server that could take four times as many requests as it starts with."""
    table = {
        "preset": "plain",
        "clock": "virtual",
        "budget": {"minutes": 2},
        "llm": {"concurrency": 128},
        "algorithm": {"max_in_flight": 40},
        "scheduler": scheduler,
    }
    config = parse_config(table, "test")
    changes: Changes = []

    def watch(event: Event) -> None:
        if event.kind == "admission.changed":
            changes.append(event.data)

    async def go() -> Result:
        return await run(config, watchers=Watchers(events=(watch,)))

    return clock.run(go, clock="virtual"), changes


def test_by_default_the_limit_is_fixed() -> None:
    result, changes = scheduled()
    assert changes == []
    assert result.server is None
    assert result.mean_in_flight > 32


@pytest.mark.parametrize("policy", ["server_queue", "latency"])
def test_a_run_finds_its_limit_and_finds_it_again(policy: str) -> None:
    result, changes = scheduled(admission={"policy": policy, "interval_seconds": 1.0})
    again, changes_again = scheduled(admission={"policy": policy, "interval_seconds": 1.0})
    limits = [change["limit"] for change in changes]
    assert changes[0]["before"] == 16
    assert max(limit for limit in limits if isinstance(limit, int)) > 64
    assert all(isinstance(limit, int) and limit <= 128 for limit in limits)
    assert changes == changes_again
    assert result.server == again.server
    assert (result.server is not None and result.server.samples >= 100) == (policy == "server_queue")
    assert (result.llm.requests, result.report.wall_seconds) == (again.llm.requests, again.report.wall_seconds)


def test_a_run_goes_by_the_order_it_is_given() -> None:
    later, _ = scheduled(order={"policy": "later_first", "fair_every": 100})
    fifo, _ = scheduled(order={"policy": "fifo"})
    assert later.llm.requests != fifo.llm.requests
