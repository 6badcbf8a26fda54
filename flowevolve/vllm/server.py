"""Supervises one vLLM server: starts and watches it, restarts it when it dies or hangs, and stops its children too.

`keep_alive` restarts any `Replica`: one on this machine, which is a `Server`, or one on another.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import anyio
import anyio.to_thread
from anyio.abc import Process

from flowevolve._util.errors import BackendUnreachableError, FlowevolveError
from flowevolve._util.secrets import redacted
from flowevolve._util.tasks import Pulse
from flowevolve._util.words import counted
from flowevolve.vllm import keeper

if TYPE_CHECKING:
    import aiohttp

HEALTH_SECONDS = 2.0
"""The time limit of a health check while the server starts."""
HEALTH_POLL_SECONDS = 0.25
"""The time between two health checks while the server starts, as it does not announce that it is ready."""
PROGRESS_SECONDS = 10.0
"""The time between two events about the progress of a start."""
STEADY_SECONDS = 3600.0
"""If a server was healthy for this long before it died, its restarts are counted from 0 again."""
KILL_SECONDS = 10.0
"""The time that the keeper has, after the server's ``stop_seconds``, to kill what is left."""

_TAIL = 2**16
_SHOWN = 300
_BLAME = re.compile(r"\b(\w*Error|\w*Exception|error)\b\s*:", re.IGNORECASE)
_PREFIX = re.compile(r"^(\([^)]*pid=\d+\)\s*)?((INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\]\s*)?")


@dataclass(frozen=True, slots=True)
class ServerChange:
    """An event in the life of a server. ``detail`` is one line for people."""

    kind: Literal["starting", "healthy", "died", "gave_up"]
    url: str
    detail: str
    moved_from: str | None = None
    """The previous URL of a server that became healthy at another one."""


ServerListener = Callable[[ServerChange], None]
"""Called in the event loop; must not block."""


class Replica(Protocol):
    """One of our own servers."""

    url: str
    """The API's base URL."""

    async def start(self) -> None:
        """Start it and wait until it is healthy.

        Raises:
            BackendUnreachableError: if it can't be started, ends before it is healthy, or takes longer than it may.
                No process is left running then.
            InputError: if it can't be started for a reason that the user can correct.
        """
        ...

    async def death(self) -> str:
        """Wait until it has died or hangs; returns a description of what happened."""
        ...

    async def stop(self) -> None:
        """Stop it and everything it started. Returns when that is done, even if cancelled."""
        ...


async def keep_alive(replica: Replica, restarts: int, on_event: ServerListener) -> None:
    """Restart a replica whenever it dies or hangs; returns once it is given up, after ``restarts`` restarts.

    They are counted from 0 again whenever it was healthy for `STEADY_SECONDS`.
    """
    restart = 0
    died: str | None = None
    while True:
        if died is None:
            began = anyio.current_time()
            died = await replica.death()
            if anyio.current_time() - began >= STEADY_SECONDS:
                restart = 0
        if restart == restarts:
            break
        restart += 1
        on_event(ServerChange("died", replica.url, f"{died}; restart {restart} of {restarts}"))
        await replica.stop()
        try:
            await replica.start()
            died = None
        except FlowevolveError as error:
            died = str(error)
    await replica.stop()
    on_event(
        ServerChange("gave_up", replica.url, f"{died}; it is not started again, after {counted(restarts, 'restart')}")
    )


@dataclass(slots=True)
class Server:
    """A command that serves at ``url`` (the API's base URL) once it is healthy, and writes to ``log``."""

    command: Sequence[str]
    environment: dict[str, str]
    url: str
    log: Path
    startup_seconds: float
    stop_seconds: float
    hung_seconds: float
    """The time limit of a health check, and how long a server may fail it before it counts as hung."""
    unanswered: Pulse
    """Fired by callers who got no answer. A running server's health is checked only then."""
    on_event: ServerListener
    _process: Process | None = field(default=None, init=False)
    _log_start: int = field(default=0, init=False)
    """The byte of the log at which the output of the current process begins."""

    async def start(self) -> None:
        """As `Replica.start`, within ``startup_seconds``."""
        began = anyio.current_time()
        process = await self._spawn()
        healthy = False
        with anyio.move_on_after(self.startup_seconds) as patience:
            healthy = await self._becomes_healthy(process, began)
        if patience.cancelled_caught:
            await self.stop()
            raise BackendUnreachableError(
                f"vLLM was not healthy after {self.startup_seconds:.0f} s ({self.log}: {await self._log_excerpt()}); "
                "give it longer with vllm.startup_seconds"
            )
        if not healthy:
            raise BackendUnreachableError(f"vLLM {await self._how_it_ended(process)} before it was healthy")
        self.on_event(ServerChange("healthy", self.url, f"healthy after {anyio.current_time() - began:.0f} s"))

    async def stop(self) -> None:
        """As `Replica.stop`."""
        process = self._process
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            if process.stdin is not None:
                await process.stdin.aclose()  # the keeper stops the server when this pipe closes
            with anyio.move_on_after(self.stop_seconds + KILL_SECONDS):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            if process.returncode is not None and process.returncode < 0:  # the keeper itself was killed
                await anyio.to_thread.run_sync(keeper.kill_session, process.pid)

    async def death(self) -> str:
        """As `Replica.death`."""
        process = self._process
        assert process is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_for_hanging, process, tasks.cancel_scope)
            await process.wait()
            tasks.cancel_scope.cancel()
        if process.returncode is None:
            return f"vLLM was not healthy for {self.hung_seconds:g} s ({self.log}: {await self._log_excerpt()})"
        return f"vLLM {await self._how_it_ended(process)}"

    async def _watch_for_hanging(self, process: Process, scope: anyio.CancelScope) -> None:
        """Cancel ``scope`` when a running server fails a health check after an unanswered request, and again later.

        The second check comes ``hung_seconds`` after the first.
        """
        while True:
            await self.unanswered.wait()
            if await self._is_healthy():
                continue
            with anyio.move_on_after(self.hung_seconds):
                await process.wait()
            if process.returncode is None and not await self._is_healthy():
                scope.cancel()

    async def _is_healthy(self) -> bool:
        async with _asking(self.hung_seconds) as session:
            return await _healthy(session, self._health)

    async def _spawn(self) -> Process:
        command = [sys.executable, "-I", "-S", keeper.__file__, str(self.stop_seconds), *self.command]
        try:
            output = await anyio.to_thread.run_sync(self.log.open, "ab")
            with output:
                self._log_start = output.tell()
                self._process = await anyio.open_process(
                    command, stdout=output, stderr=output, env=self.environment, start_new_session=True
                )
        except OSError as error:
            raise BackendUnreachableError(f"vLLM can't be started: {error}") from error
        return self._process

    async def _becomes_healthy(self, process: Process, began: float) -> bool:
        """Wait until a health check succeeds (True) or the process ends (False)."""
        reported = began
        async with _asking(HEALTH_SECONDS) as session:
            while process.returncode is None:
                if await _healthy(session, self._health):
                    return True
                now = anyio.current_time()
                if now - reported >= PROGRESS_SECONDS:
                    reported = now
                    self.on_event(
                        ServerChange(
                            "starting", self.url, f"not ready after {now - began:.0f} s: {await self._last_log_line()}"
                        )
                    )
                with anyio.move_on_after(HEALTH_POLL_SECONDS):
                    await process.wait()
        return False

    @property
    def _health(self) -> str:
        return self.url.removesuffix("/v1") + "/health"

    async def _how_it_ended(self, process: Process) -> str:
        code = process.returncode
        number = None if code is None else -code if code < 0 else code - 128 if code > 128 else None
        if number in {each.value for each in signal.Signals}:
            ended = f"was killed by {signal.Signals(number).name}"
        else:
            ended = f"ended with code {code}"
        return f"{ended} ({self.log}: {await self._log_excerpt()})"

    async def _last_log_line(self) -> str:
        lines = await self._lines()
        return lines[-1] if lines else "nothing in its log yet"

    async def _log_excerpt(self) -> str:
        """An excerpt of its log: the first line that names an error, and the last two lines."""
        lines = await self._lines()
        telling = [line for line in lines if _BLAME.search(line)][:1] + lines[-2:]
        return " | ".join(dict.fromkeys(telling)) or "nothing"

    async def _lines(self) -> list[str]:
        text = await anyio.to_thread.run_sync(_tail, self.log, self._log_start)
        lines = (_PREFIX.sub("", line).strip()[:_SHOWN] for line in redacted(text).splitlines())
        return [line for line in lines if line]


def _asking(seconds: float) -> aiohttp.ClientSession:
    import aiohttp  # noqa: PLC0415 - slow to load, and most runs start no server

    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds))


async def _healthy(session: aiohttp.ClientSession, url: str) -> bool:
    import aiohttp  # noqa: PLC0415 - as above

    try:
        async with session.get(url) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


def _tail(path: Path, start: int) -> str:
    """The end of a log, from byte ``start`` on at the earliest."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(start, size - _TAIL))
            return log.read().decode("utf-8", "replace")
    except OSError:
        return ""
