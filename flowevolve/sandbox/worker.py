"""A zygote as seen from outside: its process, its socket and its end. Everything here blocks and runs in threads."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import IO

from flowevolve._util.errors import InputError
from flowevolve._util.processes import wait_for_end
from flowevolve._util.work_folders import work_folder
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox import isolation
from flowevolve.sandbox.inside import wire
from flowevolve.sandbox.inside.wire import Report, Request
from flowevolve.sandbox.outcome import Outcome, no_report, read_outcome

START_SECONDS = 60.0
"""The time limit for starting the interpreter and importing the preloaded modules."""
GRACE_SECONDS = 0.6
"""How long after a program's timeout its supervisor may take to end it and report, before the sandbox is killed."""
_END_SECONDS = 2.0
_REPORT_LIMIT = 2**20
_SAID = 500


class Worker:
    """A warm interpreter in a sandbox; programs run in forks of it, one at a time."""

    def __init__(self, settings: SandboxSettings) -> None:
        """Start the sandbox and wait until it is ready.

        Raises:
            OSError: if it can't be started.
            InputError: if it ends at once or is not ready in time; the message contains the output of bubblewrap or the
                interpreter.
        """
        self.usable = True
        self._isolated = settings.isolation == "bubblewrap"
        with ExitStack() as failing:
            self._control, inner = socket.socketpair()
            failing.callback(self._control.close)
            self._control.settimeout(START_SECONDS)
            with inner, tempfile.TemporaryFile() as errors:
                self._process, info = _spawn(settings, inner, errors)
                inner.close()
                self._init: int | None = None
                try:
                    self._init = _first_process(info) if self._isolated else None
                    wire.receive(self._control, len(wire.READY))
                except (EOFError, OSError, ValueError) as error:
                    self._process.kill()
                    self.close()
                    raise InputError(f"sandbox: it can't be started here: {self._why(error, errors)}") from None
                finally:
                    os.close(info)
            failing.pop_all()

    def _why(self, error: Exception, output: IO[bytes]) -> str:
        """Why the sandbox can't be started, and what helps. ``output`` is what bubblewrap or the interpreter wrote."""
        if isinstance(error, TimeoutError):
            return f"it was not ready after {START_SECONDS:g} s; the machine may be too busy"
        output.seek(0)
        reason = " ".join(output.read().decode("utf-8", "replace").split())[-_SAID:] or "it gave no reason"
        if self._isolated:
            return f"{reason}; allow it here, or {isolation.RISK}"
        return f"{reason}; it has to be allowed to start processes, and needs space in the temporary folder"

    def run(self, request: Request, channel: Sequence[int] = ()) -> Outcome | None:
        """Run one program to its end; None if the sandbox itself ended, during the run or before.

        Afterwards, `usable` says whether another program can be run. In a sandbox with namespaces, the program gets the
        descriptors of ``channel`` as its own, numbered from 4 on; here they are closed.
        """
        if self._isolated:
            return self._run(request, channel)
        with work_folder("program") as folder:
            return self._run(replace(request, folder=str(folder)))

    def kill(self) -> None:
        """Kill the sandbox and everything in it, without waiting. May be called from any thread and more than once."""
        self.usable = False
        if self._init is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Kill the sandbox and wait until all its processes are gone. Call this once."""
        self.kill()
        if self._init is not None:
            wait_for_end(self._init)  # by then all processes of the namespace are gone
            os.close(self._init)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self._process.kill()
        self._process.wait()
        self._control.close()

    def _run(self, request: Request, channel: Sequence[int] = ()) -> Outcome | None:
        limits = (_REPORT_LIMIT, request.output_limit, request.output_limit, request.result_limit + 1)
        self._control.settimeout(request.timeout + GRACE_SECONDS)
        try:
            try:
                wire.send(self._control, wire.packed(request), channel)
            finally:
                for descriptor in channel:
                    os.close(descriptor)
            report, stdout, stderr, result = (wire.receive(self._control, limit) for limit in limits)
        except TimeoutError:
            self.kill()
            return no_report(request, "timeout")
        except (EOFError, OSError, ValueError):
            self.kill()
            return None
        return read_outcome(request, Report(**json.loads(report)), stdout, stderr, result)


def _spawn(settings: SandboxSettings, control: socket.socket, errors: IO[bytes]) -> tuple[subprocess.Popen[bytes], int]:
    """Start the process; also returns the descriptor of bubblewrap's information about it, which the caller closes."""
    info, writer = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            isolation.command(settings, control.fileno(), writer),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(control.fileno(), writer),
            env=isolation.ENVIRONMENT,
            start_new_session=True,
        )
    except (OSError, InputError):
        os.close(info)
        raise
    finally:
        os.close(writer)
    return process, info


def _first_process(info: int) -> int:
    """A pidfd of the sandbox's process 1; all processes there end with it."""
    text = b""
    while part := os.read(info, 4096):
        text += part
    return os.pidfd_open(json.loads(text)["child-pid"])
