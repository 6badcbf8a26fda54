"""Supervises one program from outside its process but inside its namespaces: its time, memory, output and end.

With namespaces, the supervisor is process 1 of the program's namespaces: the program can neither signal nor trace it,
and all processes end with it. Without namespaces, it adopts the program's orphans, and finds and kills all descendants.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from flowevolve.sandbox.inside import candidate, files, wire
from flowevolve.sandbox.inside.wire import Report, Request, Stopped

with suppress(ImportError):  # Windows has none, and programs are refused there
    import resource

_PAGE = mmap.PAGESIZE
_CHUNK = 2**16
_MOST_SAMPLES = 4000
_FILE_SYSTEMS = ("/tmp", "/dev/shm")  # noqa: S108 - the program's own
_INODE = 1024
"""Roughly how many bytes the kernel keeps in memory for a file besides its content."""
_FEW_FILES = 2**16
"""Up to this many bytes of files, it does not matter that mapped files are counted twice."""
_COLLECTING = 0.2
"""The most seconds that a program waits for the sockets of an earlier one to disappear."""
_LOOKS = 8
"""How often to look for a thread that shows the memory of a process without a main thread, as threads may end
meanwhile.
"""
_SOCKET = 2 * 212_992
"""The most bytes that can wait in a socket by default: its buffer, and one message beyond it."""


@dataclass(slots=True)
class _Output:
    """The output read from a pipe, up to a limit; the rest is read and dropped."""

    descriptor: int
    limit: int
    content: bytearray = field(default_factory=bytearray)

    def take(self) -> bool:
        """Read what is there; returns False at the end, or if there is nothing yet."""
        try:
            part = os.read(self.descriptor, _CHUNK)
        except BlockingIOError:
            return False
        self.content += part[: self.limit - len(self.content)]
        return bool(part)


def supervise(connection: socket.socket, request: Request, channel: Sequence[int]) -> None:
    """Run the program to its end, or end it when it exceeds a limit, and send a report.

    The descriptors of ``channel`` belong to the program alone: they are closed here.
    """
    pipes = [os.pipe() for _ in range(3)]
    source = _input(request)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # else a program could end process 1 by the signal that Python handles
    others = 0 if request.folder is not None else _sockets_left()
    began = time.monotonic()
    program = os.fork()
    if program == 0:
        candidate.become_program(request, (source, pipes[0][1], pipes[1][1], pipes[2][1], *channel))
    for descriptor in (source, *channel):
        os.close(descriptor)
    # Of a result, one byte more than the limit is kept, to show that it is too long.
    limits = (request.output_limit, request.output_limit, request.result_limit + 1)
    outputs = [_Output(pipe[0], limit) for pipe, limit in zip(pipes, limits, strict=True)]
    for output, pipe in zip(outputs, pipes, strict=True):
        os.close(pipe[1])
        os.set_blocking(output.descriptor, False)
    watch = _Watch(request, program, began, outputs, connection.fileno(), others)
    stopped = watch.until_it_ends()
    seconds = time.monotonic() - began
    code = _end_all(program)
    if stopped == "deserted":
        return
    for output in outputs:
        while output.take():  # all writers have ended
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = max(used.ru_maxrss * 1024, watch.peak, watch.in_files())
    samples = whole_trace(watch.samples, seconds, peak)
    report = Report(code, stopped, seconds, used.ru_utime + used.ru_stime, peak, samples)
    wire.send(connection, wire.packed(report))
    for output in outputs:
        wire.send(connection, bytes(output.content))


def whole_trace(samples: list[list[float]], seconds: float, peak: float) -> list[list[float]]:
    """The samples extended to the program's end, with the memory of the last sample.

    A program that ended before the first sample counts as if it had used its peak all the time, so that ending between
    samples gives no advantage.
    """
    if not any(memory for _, memory in samples):
        return [[0.0, peak], [seconds, peak]]
    return [*samples, [seconds, samples[-1][1]]]


def _input(request: Request) -> int:
    """The descriptor of the program's standard input: the arguments for other languages, else empty."""
    if request.command is None:
        return os.open(os.devnull, os.O_RDONLY)
    path = f"{request.folder or '/tmp'}/.arguments"  # noqa: S108 - the program's own folder
    files.write(path, json.dumps(request.arguments).encode())
    descriptor = os.open(path, os.O_RDONLY)
    os.unlink(path)  # noqa: PTH108
    return descriptor


class _Watch:
    """The loop that watches a program."""

    def __init__(
        self, request: Request, program: int, began: float, outputs: list[_Output], lifeline: int, others: int
    ) -> None:
        """``others`` is how many sockets of earlier programs there are."""
        self.peak = 0
        self.samples: list[list[float]] = []
        self._request = request
        self._began = began
        self._allowed = request.memory + _resident(f"/proc/{os.getpid()}")  # a fork's initial memory is not counted
        self._interval = request.sample_seconds
        self._file_systems = _FILE_SYSTEMS if request.folder is None else ()  # without namespaces they are everybody's
        self._other_sockets = others
        self._socket_bytes = _socket_bytes()
        self._outputs = {output.descriptor: output for output in outputs}
        self._ended = os.pidfd_open(program)
        self._poll = select.poll()
        for descriptor in (*self._outputs, self._ended):
            self._poll.register(descriptor, select.POLLIN)
        self._poll.register(lifeline, select.POLLRDHUP)

    def until_it_ends(self) -> Stopped | None:
        """Wait until the program ends (returns None) or must be ended (returns the reason)."""
        due = 0.0
        while True:
            now = time.monotonic() - self._began
            if now >= due:
                too_much = self._sample(now)
                if too_much:
                    return too_much
                due = now + self._interval
            if now >= self._request.timeout:
                return "timeout"
            wait = max(0.0, min(due, self._request.timeout) - now)
            for descriptor, event in self._poll.poll(wait * 1000 + 1):
                if descriptor == self._ended:
                    return None
                if descriptor not in self._outputs:
                    return "deserted"
                if not self._outputs[descriptor].take() and event & select.POLLHUP:
                    self._poll.unregister(descriptor)

    def _sample(self, now: float) -> Stopped | None:
        processes = _others()
        memory = self._memory(processes)
        self.peak = max(self.peak, memory)
        self.samples.append([now, memory])
        if len(self.samples) >= _MOST_SAMPLES:
            del self.samples[1::2]
            self._interval *= 2
        if memory > self._allowed:
            return "memory"
        return "processes" if len(processes) > self._request.processes else None

    def in_files(self) -> int:
        """The bytes that the program's files take. All are in memory, including deleted files that are still open."""
        found = 0
        for place in self._file_systems:
            used = os.statvfs(place)
            found += (used.f_blocks - used.f_bfree) * used.f_frsize + (used.f_files - used.f_ffree) * _INODE
        return found

    def _memory(self, processes: list[int]) -> int:
        """All memory of the program in bytes: of its processes, files and sockets."""
        files = self.in_files()
        sockets = max(0, _sockets() - self._other_sockets) * self._socket_bytes if self._file_systems else 0
        looked = [_looked_at(pid) for pid in processes]
        resident = sum(size for _, size in looked)
        if resident == 0:  # it has ended, or its processes have; a sample then says nothing
            return 0
        memory = files + sockets + resident
        if files > _FEW_FILES:  # mapped files were also counted for the processes
            memory -= sum(_status(place, b"RssShmem:") for place, _ in looked)
        if memory > self._allowed:  # memory shared by several processes was counted for each of them
            memory = files + sockets + sum(_share(pid, without_files=bool(self._file_systems)) for pid in processes)
        if self._request.command is not None:  # its mappings have no limit, so their page tables are counted
            memory += sum(_status(place, b"VmPTE:") for place, _ in looked)
        return memory


def _end_all(program: int) -> int:
    """Kill the program and everything it started, and wait for them; returns the program's exit code."""
    code = 0
    while True:
        for pid in _others():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            ended, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return code
        if ended == program:
            code = os.waitstatus_to_exitcode(status)


def _others() -> list[int]:
    """The processes of the program: with namespaces, all but this one, else our descendants."""
    if os.getpid() == 1:
        return [pid for pid in _in_view() if pid != 1]
    parents = _parents()
    found: set[int] = set()
    while new := {pid for pid, parent in parents.items() if parent in found | {os.getpid()}} - found:
        found |= new
    return sorted(found)


def _parents() -> dict[int, int]:
    """The parent of every process in view."""
    found = {}
    for pid in _in_view():
        with suppress(OSError):
            # pid (name) state parent ...; a name may have spaces and brackets
            found[pid] = int(files.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
    return found


def _in_view() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - many times a second


def _looked_at(pid: int) -> tuple[str, int]:
    """The folder in ``/proc`` that shows the memory of a process, and how many bytes are resident.

    When the main thread has ended, the folder of the process shows nothing any more. Then it is that of another thread,
    beginning with the newest, because a program may hand on its work from thread to thread.
    """
    whole = f"/proc/{pid}"
    if size := _resident(whole):
        return whole, size
    with suppress(OSError):  # it has just ended
        for _ in range(_LOOKS):
            others = [thread for thread in os.listdir(f"{whole}/task") if thread != str(pid)]  # noqa: PTH208 - as above
            for thread in reversed(others):
                if size := _resident(place := f"{whole}/task/{thread}"):
                    return place, size
            if not others:
                break
    return whole, 0


def _resident(place: str) -> int:
    """The resident memory in bytes; 0 if the process, or thread, has just ended."""
    with suppress(OSError, IndexError):
        return int(files.read(f"{place}/statm").split()[1]) * _PAGE
    return 0


def _status(place: str, field: bytes) -> int:
    """A size from the status of a process, in bytes; 0 if the process has just ended."""
    return _kilobytes(f"{place}/status", field) or 0


def _share(pid: int, *, without_files: bool) -> int:
    """The proportional set size in bytes, which divides shared memory among its users. This is slower than `_resident`,
    which is used if the process can't be inspected. ``without_files`` leaves out files in memory, which are counted
    elsewhere.
    """
    path = f"{_looked_at(pid)[0]}/smaps_rollup"
    whole = _kilobytes(path, b"Pss:")
    if whole is None:
        return _looked_at(pid)[1]
    return whole - ((_kilobytes(path, b"Pss_Shmem:") or 0) if without_files else 0)


def _kilobytes(path: str, field: bytes) -> int | None:
    """A field of a file in ``/proc``, in bytes; None if it can't be read, or has no such field."""
    with suppress(OSError):
        for line in files.read(path).splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return None


def _sockets() -> int:
    """The number of sockets in the program's network namespace, including those that wait in other sockets to be
    received.
    """
    with suppress(OSError, IndexError):
        return int(files.read("/proc/net/sockstat").split()[2])  # sockets: used N
    return 0


def _sockets_left() -> int:
    """The number of sockets of earlier programs. The kernel collects sockets that were sent to each other only when a
    socket is closed, so for a short time this closes some, until none are left.
    """
    until = time.monotonic() + _COLLECTING
    while (left := _sockets()) and time.monotonic() < until:
        for end in socket.socketpair():
            end.close()
        time.sleep(_COLLECTING / 100)
    return left


def _socket_bytes() -> int:
    with suppress(OSError):  # programs can't change it, the machine's administrator can
        return max(_SOCKET, 2 * int(files.read("/proc/sys/net/core/wmem_default")))
    return _SOCKET
