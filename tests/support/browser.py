"""A real browser without a screen or a network, driven over its debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import anyio

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATH = next((found for name in NAMES if (found := shutil.which(name))), None)
"""Where the browser is; None where there is none."""
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--remote-debugging-port=0",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Tab:
    """A page that is open in the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self.problems: list[str] = []
        """Exceptions that nobody caught, errors and warnings on the console, and what the page's policy refused."""

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command of the protocol and return its result."""
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json()
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self._note(message)

    async def open(self, url: str) -> None:
        await self.ask("Page.navigate", url=url)
        await self.until("document.querySelector('#page nav, #page .empty')")

    async def run(self, expression: str) -> Any:
        """The value of an expression of JavaScript, which may be a promise."""
        answer = await self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until a condition holds in the page."""
        while not await self.run(f"Boolean({condition})"):  # noqa: ASYNC110 - the page has its own time
            await anyio.sleep(0.02)

    async def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            await self.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" and len(key) == 1 else ""
            )

    async def picture(self, path: Path) -> None:
        """Write a picture of what is seen, as PNG."""
        seen = await self.ask("Page.captureScreenshot")
        await anyio.Path(path).write_bytes(base64.b64decode(seen["data"]))

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.problems.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.problems.append(str(params["entry"]))


@asynccontextmanager
async def browser() -> AsyncGenerator[Tab]:
    """A tab of a browser of its own."""
    assert PATH is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            PATH, *_FLAGS, f"--user-data-dir={profile}", "about:blank", stderr=asyncio.subprocess.PIPE
        )
        try:
            port = await _port(process)
            async with aiohttp.ClientSession() as client:
                async with client.get(f"http://127.0.0.1:{port}/json/list") as response:
                    url = next(each["webSocketDebuggerUrl"] for each in await response.json() if each["type"] == "page")
                async with client.ws_connect(url, max_msg_size=0) as socket:
                    tab = Tab(socket)
                    for domain in ("Page", "Runtime", "Log"):
                        await tab.ask(f"{domain}.enable")
                    yield tab
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def _port(process: asyncio.subprocess.Process) -> int:
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode():
        if "DevTools listening on" in line:
            return int(line.split(":")[-1].split("/")[0])
    raise AssertionError("the browser did not start")
