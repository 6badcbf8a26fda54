"""A real browser without a screen or a network: the Chromium of this system, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATH = next((found for name in NAMES if (found := shutil.which(name))), None)
"""Where the browser is; None where there is none."""
NEEDED = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.skipif(PATH is None, reason="there is no Chromium")]
"""The marks of a test that has a tab: the browser is started once, on one event loop."""
PATIENCE = 120_000
"""Milliseconds. The machine may be busy."""
expect.set_options(timeout=PATIENCE)
_FLAGS = ("--no-sandbox", "--disable-gpu", "--proxy-server=127.0.0.1:9")
"""No proxy listens there, so nothing but this machine can be reached."""


@asynccontextmanager
async def started() -> AsyncGenerator[Browser]:
    """The browser."""
    async with (
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=PATH, args=_FLAGS, timeout=PATIENCE) as browser,
    ):
        yield browser


@asynccontextmanager
async def opened(browser: Browser) -> AsyncGenerator[Page]:
    """A tab in which nothing may go wrong: no exception, no error or warning on the console, nothing that the page's
    policy refuses, and no request that leaves this machine.
    """
    problems: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            problems.append(message.text)

    async with await browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.extend([] if _here(request.url) else [request.url]))
        yield page
    assert not problems, problems


def _here(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("file", "data", "blob") or parts.hostname == "127.0.0.1"


async def show(tab: Page, url: str) -> None:
    """Open a page of ours, until it is drawn."""
    await tab.goto(url)
    await tab.locator("#page nav, #page .empty").first.wait_for()
