"""A zygote as the engine sees it: its process, its socket, and how it is ended. Everything here blocks: for threads."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import IO

from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.errors import InputError
from flowevolve.sandbox import launch
from flowevolve.sandbox.inside import wire
from flowevolve.sandbox.inside.wire import Report, Request
from flowevolve.sandbox.outcome import Outcome, no_report, read_outcome

START_SECONDS = 60.0
"""For the interpreter and what it preloads."""
GRACE_SECONDS = 0.6
"""What the inside has beyond a program's time-out to end it and report, before everything there is killed."""
_END_SECONDS = 2.0
_REPORT_LIMIT = 2**20
_SAID = 500


class Worker:
    """A warm interpreter in a sandbox; programs run in forks of it, one at a time."""

    def __init__(self, settings: SandboxSettings) -> None:
        """Start it and wait until it is ready.

        Raises:
            InputError: if that fails, with what bubblewrap or the interpreter said.
        """
        self.usable = True
        self._isolated = settings.isolation == "bubblewrap"
        with ExitStack() as failing:
            self._control, inner = socket.socketpair()
            failing.callback(self._control.close)
            self._control.settimeout(START_SECONDS)
            with inner, tempfile.TemporaryFile() as said:
                self._process, told = _spawn(settings, inner, said)
                inner.close()
                self._init: int | None = None
                try:
                    self._init = _first_process(told) if self._isolated else None
                    wire.receive(self._control, len(wire.READY))
                except (EOFError, OSError, ValueError):
                    self._process.kill()
                    self.close()
                    said.seek(0)
                    why = " ".join(said.read().decode("utf-8", "replace").split())[-_SAID:] or "no word why"
                    mend = launch.RISK if self._isolated else "docs/how-to/sandbox.md says what it needs"
                    raise InputError(f"sandbox: it can't be started here: {why}; {mend}") from None
                finally:
                    os.close(told)
            failing.pop_all()

    def run(self, request: Request) -> Outcome | None:
        """Run one program to its end; None if the sandbox itself came to an end, then or before.

        Afterwards `usable` says whether there may be another.
        """
        if self._isolated:
            return self._run(request)
        folder = tempfile.mkdtemp(prefix="flowevolve-")
        try:
            return self._run(replace(request, folder=folder))
        finally:  # unlike shutil.rmtree, it removes folders however deep they are
            subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)  # noqa: S603, S607

    def kill(self) -> None:
        """Kill it and everything in it, without waiting; may be called from any thread, more than once."""
        self.usable = False
        if self._init is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Kill it, and wait until nothing is left of it. To be called once."""
        self.kill()
        if self._init is not None:
            ended = select.poll()  # unlike select, it takes descriptors above 1023
            ended.register(self._init, select.POLLIN)
            ended.poll()  # until all processes of the namespace are gone
            os.close(self._init)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self._process.kill()
        self._process.wait()
        self._control.close()

    def _run(self, request: Request) -> Outcome | None:
        limits = (_REPORT_LIMIT, request.output_limit, request.output_limit, request.result_limit + 1)
        self._control.settimeout(request.timeout + GRACE_SECONDS)
        try:
            wire.send(self._control, wire.packed(request))
            report, stdout, stderr, result = (wire.receive(self._control, limit) for limit in limits)
        except TimeoutError:
            self.kill()
            return no_report(request, "timeout")
        except (EOFError, OSError, ValueError):
            self.kill()
            return None
        return read_outcome(request, Report(**json.loads(report)), stdout, stderr, result)


def _spawn(settings: SandboxSettings, control: socket.socket, errors: IO[bytes]) -> tuple[subprocess.Popen[bytes], int]:
    """Start it; also returns where bubblewrap tells of it, which the caller closes."""
    told, info = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            launch.command(settings, control.fileno(), info),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(control.fileno(), info),
            env=launch.ENVIRONMENT,
            start_new_session=True,
        )
    except (OSError, InputError):
        os.close(told)
        raise
    finally:
        os.close(info)
    return process, told


def _first_process(told: int) -> int:
    """A handle of process 1 of the sandbox: with it, everything there ends."""
    text = b""
    while part := os.read(told, 4096):
        text += part
    return os.pidfd_open(json.loads(text)["child-pid"])
