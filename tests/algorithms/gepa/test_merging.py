"""Merges in the stream, where several are on their way at once."""

from __future__ import annotations

import pytest

from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.events import Event
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from tests.support.split_style import SplitStyle

COMPONENTS = {"a": "You are helpful.", "b": "Write for our company."}


def merged(events: list[Event]) -> tuple[int, int]:
    """How many flows merged, and how many of these had a candidate confirmed."""
    flows = {str(each.data["item"]).partition(".")[0] for each in events if each.data.get("ancestor") is not None}
    confirmed = [
        each
        for each in events
        if each.kind == "pool.commit"
        and str(each.data["item"]).partition(".")[0] in flows
        and any(change.get("status") == "confirmed" for change in each.data["changes"])  # type: ignore[union-attr]
    ]
    return len(flows), len(confirmed)


@pytest.mark.parametrize("staleness", ["full", "reflective"])
def test_no_more_merges_are_accepted_than_max_merges(staleness: str) -> None:
    events: list[Event] = []
    config = parse_config(
        {
            "seed": 1,
            "clock": "virtual",
            "budget": {"rollouts": 1500},
            "algorithm": {"max_in_flight": 16, "merge": True, "max_merges": 2},
            "staleness": {"policy": staleness},
        },
        "test",
    )

    async def go() -> Result:
        return await run(config, task=SplitStyle(COMPONENTS, val=10), watchers=Watchers(events=[events.append]))

    clock.run(go, clock="virtual")
    tried, accepted = merged(events)
    assert tried >= accepted == 2
