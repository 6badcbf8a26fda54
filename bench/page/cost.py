"""The calls a second of a run, and the CPU time of its process for each, with and without browsers that watch it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp
import anyio
import anyio.to_thread
from playwright.async_api import Browser

from bench._lib.paths import ROOT
from bench.durability.runs import COMMAND, KEY, server_process, write_config
from bench.page.browser import chromium, opened
from flowevolve.runner.watching import ANSWER

LATENCY, CONCURRENCY = 0.12, 64
"""Seconds that each call takes, and calls in flight: some 500 calls a second."""
SETTINGS: Mapping[str, object] = {
    "preset": "plain",
    "task": {"name": "house_style"},
    "algorithm": {"max_in_flight": 32},
    "stages": {name: {"workers": 32} for name in ("generate", "propose", "screen", "evaluate")},
    "budget": {"minutes": 60},
}
WAYS: Mapping[str, int | None] = {"nobody": None, "the page alone": 0, "three browsers": 3}
"""Who watches: how many browsers, or None if the run has no page."""
BEGUN = 12.0
"""The age of a run in seconds at which counting begins; by then browsers have drawn its page."""
PATIENCE = 60.0
"""The most seconds that a run may take to name its page."""
_COUNTED = "vllm:request_success_total"


@dataclass(frozen=True, slots=True)
class Counted:
    """What a run did in the seconds that count. The CPU time is that of the run's own process, without its page's."""

    way: str
    calls_per_second: float
    cpu_ms_per_call: float


@dataclass(frozen=True, slots=True)
class _Sample:
    seconds: float
    calls: float
    cpu: float


def compare(rounds: int, seconds: float) -> list[dict[str, object]]:
    """Measure each way once per round, for this many seconds."""
    order = random.Random(0)
    ways = [way for _ in range(rounds) for way in order.sample(list(WAYS), len(WAYS))]
    return [asdict(each) for each in anyio.run(_all, ways, seconds)]


async def _all(ways: Sequence[str], seconds: float) -> list[Counted]:
    found = []
    async with chromium() as browser:
        for way in ways:
            found.append(await _count(way, seconds, browser))
            print(found[-1], flush=True)
    return found


async def _count(way: str, seconds: float, browser: Browser) -> Counted:
    browsers = WAYS[way]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with server_process(folder / "requests", "--latency", f"{LATENCY}") as url:
            begun = anyio.current_time()
            with _run(folder, url, watched=browsers is not None) as run:
                async with AsyncExitStack() as stack:
                    if browsers:
                        address = await anyio.to_thread.run_sync(_address, _log(folder))
                        for _ in range(browsers):
                            await stack.enter_async_context(opened(browser, address))
                    await anyio.sleep_until(begun + BEGUN)
                    before = await _sample(run, url)
                    await anyio.sleep_until(begun + BEGUN + seconds)
                    after = await _sample(run, url)
    calls = after.calls - before.calls
    return Counted(way, calls / (after.seconds - before.seconds), 1000 * (after.cpu - before.cpu) / calls)


@contextmanager
def _run(folder: Path, url: str, *, watched: bool) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own, until the block ends. Its output goes to `_log`."""
    config = folder / "config.toml"
    write_config(config, url, {**SETTINGS, "watch": watched}, concurrency=CONCURRENCY)
    command = [*COMMAND, "run", str(config), "--out", str(folder / "run")]
    with (
        _log(folder).open("w") as said,
        subprocess.Popen(command, cwd=ROOT, text=True, stdout=said, stderr=said, env={**os.environ, KEY: "-"}) as run,
    ):
        try:
            yield run
        finally:
            run.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                run.wait(30)
            run.kill()


def _log(folder: Path) -> Path:
    return folder / "said"


def _address(log: Path) -> str:
    """The address of the run's page, which the run prints; waits for it."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        for line in log.read_text().splitlines(keepends=True):
            if ANSWER in line and line.endswith("\n"):
                return line.partition(ANSWER)[2].strip()
        time.sleep(0.1)
    raise RuntimeError(f"the run named no page: {log.read_text()}")


async def _sample(run: subprocess.Popen[str], url: str) -> _Sample:
    async with aiohttp.ClientSession() as client, client.get(url.removesuffix("/v1") + "/metrics") as answer:
        lines = (await answer.text()).splitlines()
    calls = sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(_COUNTED))
    return _Sample(anyio.current_time(), calls, _cpu_seconds(run.pid))


def _cpu_seconds(process: int) -> float:
    """The CPU time of a process on Linux, with all of its threads and none of its children."""
    behind_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(behind_name[11]) + int(behind_name[12])) / os.sysconf("SC_CLK_TCK")
