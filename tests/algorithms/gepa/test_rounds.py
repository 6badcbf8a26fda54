"""Round-robin selection of components, as gepa's: a child goes on where its parent was when it was added."""

from __future__ import annotations

from typing import cast

from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.events import Event
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from tests.support.split_style import SplitStyle

COMPONENTS = {"a": "You are helpful.", "b": "Write for our company.", "c": "Take care."}
NAMES = tuple(COMPONENTS)


def test_a_child_goes_on_where_its_parent_was_when_it_was_added() -> None:
    events: list[Event] = []
    config = parse_config(
        {"clock": "virtual", "budget": {"proposals": 60}, "algorithm": {"max_in_flight": 6, "merge": True}}, "test"
    )

    async def go() -> Result:
        return await run(config, task=SplitStyle(COMPONENTS, val=8), watchers=Watchers(events=[events.append]))

    clock.run(go, clock="virtual")
    parents: dict[str, list[str]] = {}
    places: dict[str, int] = {}
    children = 0
    for event in events:
        match event.kind:
            case "candidate.proposed":
                parents[str(event.data["candidate"])] = cast("list[str]", event.data["parents"])
            case "pool.commit":
                for name in (str(change["add"]) for change in cast("list[dict[str, str]]", event.data["changes"])):
                    places[name] = max((places[parent] for parent in parents[name]), default=0)
            case "gepa.selected" if event.data["ancestor"] is None:
                (parent,) = cast("list[str]", event.data["parents"])
                assert event.data["components"] == [NAMES[places[parent]]]
                places[parent] = (places[parent] + 1) % len(NAMES)
                children += parent != "c0"
    assert children > 10
