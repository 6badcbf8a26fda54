"""Slurm jobs as nodes: each connects to the run, and runs programs in the sandboxes of its machine.

A job that waits in the queue is a node that has not joined yet. When a job has ended, another is submitted in its
place, unless the jobs in that place keep ending early on their own.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import submitit
from anyio.abc import SocketAttribute

from flowevolve._util import clock
from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve._util.logger import logger
from flowevolve._util.tasks import beside
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.evaluators import Tell, tell_nobody
from flowevolve.sandbox.isolation import check_folders
from flowevolve.sandbox.nodes import slurm_jobs
from flowevolve.sandbox.nodes.cluster import NodeLostError, NodeRefusedError, NoNodesError
from flowevolve.sandbox.nodes.connection import JoinedNode, receive_node
from flowevolve.sandbox.nodes.folders import fingerprint
from flowevolve.sandbox.nodes.host import OPEN_SECONDS, checked_machine
from flowevolve.sandbox.nodes.slurm_wait import Wait

LOOK_SECONDS = 2.0
"""The time between two checks of the jobs, as long as none has joined."""
EARLY_SECONDS = 60.0
"""A job has ended early if it ends on its own before it has been a node for this long."""
MOST_EARLY_ENDS = 3
"""After this many jobs in a row have ended early, no other is submitted in their place. As long as no job has ever been
a node, one is enough.
"""
MOST_STRANGERS = 64
"""How many connections may be open that have not proved to be nodes, besides one for each wanted node."""


@dataclass(slots=True)
class _Submitted:
    job: submitit.Job[None]
    early_ends: int
    """How many jobs in a row have ended early before it in its place."""
    began: float | None = None
    """When it became a node; None until then."""


class SlurmCluster:
    """Keeps as many jobs queued or running as the settings say."""

    def __init__(self, settings: SandboxSettings, tell: Tell = tell_nobody) -> None:
        self._settings = settings
        self._tell = tell
        self._host, self._port = "", 0
        self._secret = secrets.token_hex()
        self._folder = Path()
        """The folder with the jobs' files."""
        self._readable = ""
        """The fingerprint of the folders that programs may read here."""
        self._vacant = [0] * settings.slurm.nodes
        """For each place that has no job and should get one: how many jobs in a row have ended early there."""
        self._jobs: dict[str, _Submitted] = {}
        """Jobs that are queued or running, by their ids."""
        self._joined: dict[str, JoinedNode] = {}
        self._arrived = anyio.Event()
        self._has_had_node = False
        self._is_ending = False
        self._why_ended = ""
        """Why the last job that ended early has ended."""
        self._logs_tell = False
        """Whether a job has ended on its own, so that its log may say why."""
        self._wait = Wait(settings.slurm.nodes, tell)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Submit the jobs, and wait until one of them has begun.

        Raises:
            InputError: if programs can't read a folder, no port can be listened on, Slurm does not accept the jobs, or
                all of them end at once.
        """
        await in_thread(slurm_jobs.check_settings, self._settings.slurm)
        self._host, self._port = await in_thread(_address, self._settings)
        await in_thread(check_folders, self._settings)
        self._readable = await in_thread(fingerprint, self._settings.readable)
        self._folder = await in_thread(slurm_jobs.make_folder, self._settings.slurm)
        async with AsyncExitStack() as stack:
            stack.push_async_exit(self._remove_folder)
            await stack.enter_async_context(self._listening())
            stack.push_async_callback(self._end_jobs)
            await self._wait_for_first()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def _remove_folder(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the files of the jobs, except for logs that may show what went wrong."""
        all_went_well = not self._logs_tell and not isinstance(error, Exception)
        with anyio.CancelScope(shield=True):
            await in_thread(partial(slurm_jobs.remove_folder, self._folder, with_logs=all_went_well))

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        try:
            listener = await anyio.create_tcp_listener(local_host=self._host, local_port=self._port)
        except OSError as error:
            raise InputError(f"sandbox.address: can't listen at {self._host} for nodes: {error}") from error
        self._port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - nothing of Django
        meeting = anyio.CapacityLimiter(self._settings.slurm.nodes + MOST_STRANGERS)
        receive = partial(receive_node, secret=self._secret, joined=self._note_joined, meeting=meeting)
        async with listener, beside() as tasks:
            tasks.start_soon(listener.serve, receive, tasks)
            yield

    def _note_joined(self, node: JoinedNode) -> None:
        if before := self._joined.pop(node.name, None):  # the job was restarted, and its first end was not noticed
            before.kill()
        if self._is_ending:
            node.kill()
            return
        self._joined[node.name] = node
        self._arrived.set()

    async def _wait_for_first(self) -> None:
        try:
            await self._renew()
            while not self._joined:
                self._arrived = anyio.Event()  # a job that has arrived may be gone again
                with anyio.move_on_after(LOOK_SECONDS):
                    await self._arrived.wait()
                await self._renew()
        except NodeLostError as error:
            raise InputError(str(error)) from error

    async def names(self) -> Sequence[str]:
        await self._renew()
        return list(self._joined)

    async def _renew(self) -> None:
        """Remove jobs that have ended, and submit others in their places.

        Raises:
            NoNodesError: if no job is left, and no more are submitted.
            NodeLostError: if Slurm does not accept a job.
        """
        ended = await in_thread(lambda: [name for name, each in self._jobs.items() if each.job.done()])
        for name in [*ended, *(name for name, node in self._joined.items() if node.gone.is_set())]:
            if node := self._joined.pop(name, None):
                node.kill()
            if submitted := self._jobs.pop(name, None):
                await self._forget(submitted)
        while self._vacant:
            address = self._host, self._port
            job = await in_thread(slurm_jobs.submit, self._settings.slurm, self._folder, *address, self._secret)
            self._jobs[job.job_id] = _Submitted(job, self._vacant.pop())
        if not self._jobs and not self._joined:
            raise NoNodesError(
                "sandbox.on: all jobs of Slurm have ended early, before they could run programs or within "
                f"{EARLY_SECONDS:g} s of that; their logs are in {self._folder}; the last one says: {self._why_ended}"
            )
        self._wait.look(list(self._jobs), len(self._joined), self._folder)

    async def _forget(self, submitted: _Submitted) -> None:
        """End a job for good. Its place becomes vacant, unless too many jobs in a row have ended early there."""
        has_worked = submitted.began is not None and clock.now() - submitted.began >= EARLY_SECONDS
        taken_away = await in_thread(slurm_jobs.was_taken_away, submitted.job)
        await self._end(submitted)
        if has_worked or taken_away:
            self._logs_tell |= not taken_away
            self._vacant.append(0)
            return
        self._logs_tell = True
        early_ends = submitted.early_ends + 1
        again = early_ends < (MOST_EARLY_ENDS if self._has_had_node else 1)
        if again:
            self._vacant.append(early_ends)
        self._why_ended = await in_thread(slurm_jobs.why_ended, submitted.job)
        name, said = submitted.job.job_id, {"in_a_row": early_ends, "submitted_again": again}
        logger().warning("evaluators.slurm_job_ended_early", job=name, why=self._why_ended, **said)
        what_follows = "another is submitted in its place" if again else "no other is submitted in its place"
        self._tell(f"Slurm: job {name} has ended early: {self._why_ended}; {what_follows}")

    async def open(self, name: str) -> JoinedNode:
        node, called = self._joined[name], f"job {name}"
        try:
            with anyio.fail_after(OPEN_SECONDS):
                said = await node.begin(self._settings, self._settings.slurm.slots)
            node.machine = checked_machine(said, called, self._settings.readable, self._readable)
        except NodeRefusedError:
            node.kill()
            raise
        except TimeoutError as error:
            node.kill()
            raise NodeLostError(f"{called}: it did not answer for {OPEN_SECONDS:g} s") from error
        except NodeLostError as error:
            raise NodeLostError(f"{called}: {error}") from error
        if name in self._jobs:
            self._jobs[name].began = clock.now()
        self._has_had_node = True
        return node

    async def _end_jobs(self) -> None:
        self._is_ending = True
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for node in self._joined.values():
                    tasks.start_soon(node.end)
            async with anyio.create_task_group() as tasks:
                for submitted in self._jobs.values():
                    tasks.start_soon(self._end, submitted)

    async def _end(self, submitted: _Submitted) -> None:
        await in_thread(partial(slurm_jobs.end, submitted.job, by_itself=submitted.began is not None))


async def check_slurm(settings: SandboxSettings) -> None:
    """Check all that can be checked without submitting a job.

    Raises:
        InputError: as `SlurmCluster` would before it submits its first job.
    """
    await in_thread(slurm_jobs.check, settings.slurm)
    await in_thread(_address, settings)
    await in_thread(check_folders, settings)


def _address(settings: SandboxSettings) -> tuple[str, int]:
    """The address at which nodes reach this machine, and the port (0 for any).

    Raises:
        InputError: if the address is unknown or unusable.
    """
    if settings.slurm.executor == "local":
        if settings.address != "auto":
            raise InputError(
                f"sandbox.address: {settings.address!r} is not for sandbox.slurm.executor 'local', whose jobs are "
                "processes of this machine; take it out, or set sandbox.address=auto"
            )
        return "127.0.0.1", 0
    host, _, port = settings.address.partition(":")
    if settings.address == "auto":
        host = socket.gethostname()
    try:
        found, number = socket.gethostbyname(host), _port(port)
    except (OSError, ValueError) as error:
        raise InputError(f"sandbox.address: {settings.address!r} is no address of this machine: {error}") from error
    if settings.address == "auto" and found.startswith("127."):
        raise InputError(
            f"sandbox.address: the name of this machine, {host!r}, leads to {found}, where no node reaches it; give "
            "its address in the network of the cluster"
        )
    return found, number


def _port(given: str) -> int:
    """Raises: ValueError if ``given`` is no port."""
    number = int(given or 0)
    if not 0 <= number < 2**16:
        raise ValueError(f"there is no port {number}")
    return number
