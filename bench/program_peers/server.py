"""The recording server with the coder behind it, in a process of its own: server.py JOB, with a `ServerJob` in JSON."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from bench._lib.methods.recording_server import serve_until_ended, simulated
from bench.program_peers.coder import PeersCoder
from flowevolve._util import clock
from flowevolve.sim.profiles import PROFILES


@dataclass(frozen=True, slots=True)
class ServerJob:
    """The server runs ``speed`` times as fast as its profile says; the other fields are as in `PeersCoder`."""

    profile: str
    speed: float
    seed: int
    entry: str
    endless_at: int | None = None


def server(job: ServerJob) -> AbstractAsyncContextManager[str]:
    return simulated(
        PROFILES[job.profile].faster(job.speed), PeersCoder(job.seed, entry=job.entry, endless_at=job.endless_at)
    )


if __name__ == "__main__":
    clock.run(serve_until_ended, server(ServerJob(**json.loads(sys.argv[1]))))
