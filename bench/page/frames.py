"""How many frames a second are drawn while somebody scrolls through the page of a run of very many candidates."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import anyio
from playwright.async_api import Page

from bench.overhead.engine import evolve_into
from bench.overhead.instant_server import instant_server
from bench.page.browser import chromium, opened
from flowevolve.page.live.server import serve_page

PLACES: Mapping[str, str] = {
    "Timeline": ".chart",
    "Lineage": ".field",
    "Examples": ".map",
    "Log": ".rows",
}
"""The views, each with the selector of what is scrolled or zoomed."""
SECONDS = 6.0
WHEEL = 240.0
"""Pixels of each turn of the wheel; the direction changes every second."""
_COUNT = """
() => {
  globalThis.frames_at = [];
  const note = (at) => { frames_at.push(at); globalThis.counting = requestAnimationFrame(note); };
  globalThis.counting = requestAnimationFrame(note);
}
"""
_SIZES = """
Object.fromEntries(["candidates", "calls", "log"].map((name) => [name, flowevolve.table(name).length]))
"""
_COUNTED = "() => { cancelAnimationFrame(counting); return frames_at; }"


@dataclass(frozen=True, slots=True)
class Smoothness:
    """How one view scrolls."""

    view: str
    opening: float
    """Seconds until the view was drawn."""
    frames_per_second: float
    slowest: float
    """The longest time between two frames, in milliseconds."""


def scroll(candidates: int) -> dict[str, object]:
    """Make a run with this many candidates, open its page, and scroll through the views."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        with instant_server() as url:
            evolve_into(run, url, candidates)
        return anyio.run(_scroll, run)


async def _scroll(run: Path) -> dict[str, object]:
    async with chromium() as browser, serve_page([str(run)]) as address:
        begun = anyio.current_time()
        async with opened(browser, address) as page:
            opening = anyio.current_time() - begun
            shown = [asdict(await _through(page, view, place)) for view, place in PLACES.items()]
            return {"opening": opening, "sizes": await page.evaluate(_SIZES), "views": shown}


async def _through(page: Page, view: str, place: str) -> Smoothness:
    begun = anyio.current_time()
    await page.locator("nav a").filter(has_text=view).first.click()
    target = page.locator(f"main {place}").first
    await target.wait_for()
    await target.hover()
    opening = anyio.current_time() - begun
    await page.evaluate(_COUNT)
    ends = anyio.current_time() + SECONDS
    while (left := ends - anyio.current_time()) > 0:
        await page.mouse.wheel(0, WHEEL if int(left) % 2 else -WHEEL)
    frames: list[float] = await page.evaluate(_COUNTED)
    gaps = [after - before for before, after in pairwise(frames)]
    return Smoothness(view, opening, 1000 * len(gaps) / sum(gaps), max(gaps))
