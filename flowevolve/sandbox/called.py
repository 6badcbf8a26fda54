"""The process that calls trusted functions, at the request of `flowevolve.sandbox.functions` over a socket.

The functions' output goes where this process prints. When the other end of the socket is gone, this process and its
group are killed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from threading import Thread

from flowevolve._util.json_types import JSON
from flowevolve._util.plugins import LoadError, imported, looking_in
from flowevolve.sandbox.functions import MOST_BYTES
from flowevolve.sandbox.inside import wire


def main(descriptor: int) -> None:
    with socket.socket(fileno=descriptor) as control:
        Thread(target=_end_with, args=(descriptor,), daemon=True).start()
        wire.send(control, wire.READY)
        while True:
            asked = json.loads(wire.receive(control, MOST_BYTES))
            folder = asked["folder"]
            with looking_in(None if folder is None else Path(folder)):
                wire.send(control, _answer(control, asked["function"], asked["imports"], asked["arguments"]))


def _answer(control: socket.socket, function: str, imports: list[str], arguments: list[JSON]) -> bytes:
    """Import everything, report that it is imported, and return the message with the function's result or its error."""
    try:
        found, *_ = [imported(name) for name in (function, *imports)]
        if not callable(found):
            raise LoadError(f"{function} is not a function")
        wire.send(control, wire.READY)
        returned: object = found(*arguments)
        return json.dumps({"result": returned}, allow_nan=False).encode()
    except (Exception, SystemExit):  # noqa: BLE001 - a user's function may raise anything
        return json.dumps({"error": traceback.format_exc(limit=-20)}).encode()


def _end_with(descriptor: int) -> None:
    """Kill this process and what it started once the other end of the socket is gone, whatever is being done."""
    ended = select.poll()
    ended.register(descriptor, select.POLLRDHUP)
    ended.poll()
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]))
