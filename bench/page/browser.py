"""Chromium without a screen, driven by Playwright; it reaches nothing but this machine."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Page, async_playwright

from flowevolve._util.errors import InputError

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--proxy-server=127.0.0.1:9")
"""No proxy listens at that address, so that Chromium reaches nothing but this machine."""


@asynccontextmanager
async def chromium() -> AsyncGenerator[Browser]:
    """Run Chromium until the block ends.

    Raises:
        InputError: if there is none.
    """
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        raise InputError("there is no Chromium; make browser installs one")
    async with (
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=path, args=FLAGS) as browser,
    ):
        yield browser


@asynccontextmanager
async def opened(browser: Browser, address: str) -> AsyncGenerator[Page]:
    """A browser window of its own that shows a page of ours, once that page is drawn."""
    async with await browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = await context.new_page()
        await page.goto(address)
        await page.locator("#page nav").first.wait_for()
        yield page
