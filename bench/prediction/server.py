"""A simulated server with a measured profile and recorded lengths of answers, in a process of its own.

    python -m bench.prediction.server FILE

``FILE`` has the profile and the exchanges, as `bench.prediction.known.Known` writes them.
"""

from __future__ import annotations

import sys

from bench._lib.methods.recording_server import serve_until_ended, simulated
from bench.prediction.known import Known
from flowevolve._util import clock


async def main(file: str) -> None:
    profile, replies = Known.read(file).model()
    await serve_until_ended(simulated(profile, replies))


if __name__ == "__main__":
    clock.run(main, sys.argv[1])
