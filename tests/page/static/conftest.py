"""A browser that all tests of the page share, and in it a tab for each test."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from flowevolve.page.reading.source import RunSource
from flowevolve.page.report.report import write_report
from flowevolve.page.tables.memory import Tables
from flowevolve.runner.result import Result
from tests.support.browser import opened, started


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncGenerator[Browser]:
    async with started() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def tab(browser: Browser) -> AsyncGenerator[Page]:
    async with opened(browser) as tab:
        yield tab


@pytest.fixture(scope="session")
def report(directory: Path, result: Result) -> Path:
    """The report of the run that has ended."""
    return write_report([directory], directory.with_name("report.html"))


@pytest.fixture(scope="session")
def tables(directory: Path, result: Result) -> Tables:
    """What its journal says."""
    with RunSource(directory, directory.name) as source:
        return Tables(source.changes())
