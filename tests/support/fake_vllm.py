"""A stand-in for the ``vllm`` command: the simulated server behind vLLM's command line, with processes to be ended.

As with vLLM, requests below ``/v1`` must come with the key in ``VLLM_API_KEY``, if there is one. What else it does is
said in environment variables, too, so that its command line is vLLM's alone:

- ``FAKE_NOTES``: a folder in which every start leaves a file named by its number, with its command line, environment and
  the ids of its processes: itself, and a child in a session of its own that ignores SIGTERM.
- ``FAKE_FATES``: what becomes of each start, separated by commas; the last one holds for all further ones.
  ``serve`` until asked to end; ``die``: end with an error before it is healthy; ``hang``: never become healthy;
  ``stubborn``: serve and ignore SIGTERM; ``die_after_N``: serve N chat calls, then end at once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import anyio
from aiohttp import web
from aiohttp.typedefs import Handler

from flowevolve.core.model import ChatReply, ChatRequest
from flowevolve.sim.backend import OnWriting, SimBackend
from flowevolve.sim.profiles import PROFILES, BatchingProfile, OutputLength
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld

FAST = PROFILES["fast-demo"]
assert isinstance(FAST, BatchingProfile)
QUICK = replace(FAST, output=OutputLength(median=0.0, sigma=0.0, most=8192))
SLEEPER = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"


class Mortal(SimBackend):
    """Ends the whole process, without a word, at the call after this many."""

    calls_left: int | None = None

    async def answer(self, request: ChatRequest, *, timeout: float, on_writing: OnWriting | None = None) -> ChatReply:
        if self.calls_left == 0:
            os._exit(9)
        if self.calls_left is not None:
            self.calls_left -= 1
        return await super().answer(request, timeout=timeout, on_writing=on_writing)


def note_start() -> str:
    """Note this start; returns its fate."""
    notes = Path(os.environ["FAKE_NOTES"])
    child = subprocess.Popen([sys.executable, "-S", "-c", SLEEPER], stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    child.stdout.readline()  # from here on it ignores SIGTERM
    note = {"arguments": sys.argv[1:], "environment": dict(os.environ), "pids": [os.getpid(), child.pid]}
    draft = notes.parent / f"draft-{os.getpid()}"
    draft.write_text(json.dumps(note))
    number = next(number for number in count() if claimed(draft, notes / str(number)))
    draft.unlink()
    fates = os.environ.get("FAKE_FATES", "serve").split(",")
    return fates[min(number, len(fates) - 1)]


def claimed(draft: Path, place: Path) -> bool:
    try:
        place.hardlink_to(draft)
    except FileExistsError:
        return False
    return True


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def argument(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


@web.middleware
async def check_key(request: web.Request, handler: Handler) -> web.StreamResponse:
    key = os.environ.get("VLLM_API_KEY")
    if key and request.path.startswith("/v1/") and request.headers.get("Authorization") != f"Bearer {key}":
        return web.json_response({"error": "Unauthorized"}, status=401)
    return await handler(request)


async def run(fate: str) -> None:
    backend = Mortal(RulesWorld(PRESETS["normal"]), QUICK, model=argument("--served-model-name"))
    if fate.startswith("die_after_"):
        backend.calls_left = int(fate.removeprefix("die_after_"))
    if fate == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if fate == "hang":
        await anyio.sleep_forever()
    async with serve(backend, argument("--host"), int(argument("--port")), [check_key]):
        await anyio.sleep_forever()


def main() -> None:
    assert sys.argv[1] == "serve"
    fate = note_start()
    say(f"(APIServer pid={os.getpid()}) INFO 01-01 00:00:00 [api_server.py:1] loading")
    if fate == "die":
        say("ValueError: no such model")
        say("see above")
        sys.exit(1)
    anyio.run(run, fate)


if __name__ == "__main__":
    main()
