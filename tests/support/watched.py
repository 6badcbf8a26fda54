"""A run with a live page, which goes on as long as somebody does something with that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from flowevolve.config.run import parse_config
from flowevolve.engine.engine import Engine
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run


async def run_while(table: Mapping[str, object], out: Path, doing: Callable[[str], Awaitable[None]]) -> Result:
    """Make a run, and do something with the address of its page meanwhile; then the run is ended."""
    addresses: list[str] = []

    async def beside(engine: Engine) -> None:
        try:
            await doing(addresses[0])
        finally:
            engine.stop()

    watchers = Watchers(pages=(addresses.append,))
    config = parse_config({**table, "watch": True}, "test")
    return await run(config, out=out, watchers=watchers, side_task=beside)
