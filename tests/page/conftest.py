"""A run that the tests of the page look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.page.reading.source import RunSource
from flowevolve.page.tables.memory import Tables
from flowevolve.runner.result import Result
from flowevolve.runner.run import run

TABLE: dict[str, object] = {
    "clock": "virtual",
    "held_out": True,
    "algorithm": {"name": "gepa", "group": False},
    "staleness": {"policy": "reflective"},
    "task": {"name": "house_style"},
    "llm": {"backend": "sim", "prices": {"simulated": {"input": 1.0, "output": 3.0}}},
    "budget": {"proposals": 16},
}


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that has ended; not to be written into."""
    return tmp_path_factory.mktemp("runs") / "ended"


@pytest.fixture(scope="session")
def result(directory: Path) -> Result:
    """What that run came to."""
    return clock.run(lambda: run(parse_config(TABLE, "test"), out=directory), clock="virtual")


@pytest.fixture(scope="session")
def tables(directory: Path, result: Result) -> Tables:
    """What its journal says, as the page has it."""
    with RunSource(directory, "ended") as source:
        return Tables(source.changes())
