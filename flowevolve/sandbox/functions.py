"""Trusted functions in processes of their own, so that they can be killed. All of this blocks and runs in threads."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.processes import wait_for_group
from flowevolve.sandbox.evaluators import TrustedCall
from flowevolve.sandbox.inside import wire
from flowevolve.sandbox.outcome import Outcome, Status, read_json

START_SECONDS = 60.0
"""The time limit for a process to start, and then for a function to be imported."""
MOST_BYTES = 2**28
"""The largest size of a message."""
_END_SECONDS = 60.0
"""How long to wait for each process that a killed one started. It has been killed, too, but can't end before an
uninterruptible system call does.
"""


class FunctionProcess:
    """A process that calls one function at a time, and keeps the modules that it has imported."""

    def __init__(self) -> None:
        """Start the process, and wait until it is ready.

        Raises:
            OSError: if it can't be started.
            InputError: if it ends at once.
        """
        self.usable = True
        with ExitStack() as failing:
            self._control, inner = socket.socketpair()
            failing.callback(self._control.close)
            self._control.settimeout(START_SECONDS)
            with inner:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                    [sys.executable, "-m", "flowevolve.sandbox.called", str(inner.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(inner.fileno(),),
                    start_new_session=True,
                )
            try:
                wire.receive(self._control, len(wire.READY))
            except (EOFError, OSError, ValueError):
                self.close()
                raise InputError(
                    "sandbox: the process that calls your functions can't be started here; see what was printed above"
                ) from None
            failing.pop_all()

    def run(self, call: TrustedCall) -> Outcome:
        """Call the function. If it does not return in time, or ends its process, the process is killed."""
        began = time.monotonic()
        status, answer = self._asked(call)
        seconds = round(time.monotonic() - began, 6)
        return Outcome(status, seconds, 0.0, 0.0, "", str(answer.get("error", "")), answer.get("result"))

    def _asked(self, call: TrustedCall) -> tuple[Status, dict[str, JSON]]:
        late: Status = "error"
        limit = START_SECONDS
        self._control.settimeout(limit)
        try:
            wire.send(self._control, json.dumps(asdict(call)).encode())
            message = wire.receive(self._control, MOST_BYTES)
            if message == wire.READY:
                late, limit = "timeout", call.timeout
                self._control.settimeout(limit)
                message = wire.receive(self._control, MOST_BYTES)
        except TimeoutError:
            self.kill()
            return late, {"error": f"it took more than {limit:g} s"}
        except (EOFError, OSError, ValueError) as error:
            self.kill()
            return "killed", {"error": f"its process ended before it did: {error}"}
        try:
            answer = read_json(message, "what the function returned")
        except ValueError as error:
            return "error", {"error": str(error)}
        assert isinstance(answer, dict), "`called` answers with a mapping"
        return "error" if "error" in answer else "ok", answer

    def kill(self) -> None:
        """Kill the process and its group, without waiting. May be called from any thread and more than once."""
        self.usable = False
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Kill the process, and wait until it and its group are gone. Call this once."""
        self.kill()
        self._process.wait()
        self._control.close()
        wait_for_group(self._process.pid, _END_SECONDS)
