"""Whole runs of a configuration on the virtual clock, with their events."""

from __future__ import annotations

from pathlib import Path

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import Config
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run


def evolve(settings: Config, out: Path | None = None) -> tuple[Result, list[fe.Event]]:
    """Make a run; returns its result and its events."""
    events: list[fe.Event] = []

    async def go() -> Result:
        return await run(settings, out=out, watchers=Watchers(events=(events.append,)))

    return clock.run(go, clock="virtual"), events
