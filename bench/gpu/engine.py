"""Provides a model and starts a real server for it: vLLM, or transformers' continuous batching."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path

import anyio
import anyio.to_thread

from bench._lib.paths import ROOT
from bench.gpu.service import Dialect, Engine
from flowevolve._util.errors import InputError
from flowevolve._util.tasks import Pulse
from flowevolve.vllm.command import find_executable
from flowevolve.vllm.server import Server, ServerChange
from flowevolve.vllm.serving import serve_vllm
from flowevolve.vllm.settings import VLLMSettings

SHAPE = ROOT / ".models" / "qwen3-8b-shape"
NAME = "measured"
"""What vLLM calls the model."""
MOST_CONTEXT = 16_384
STARTUP_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The server that is wanted.

    ``model`` names trained weights as vLLM takes them (a folder, or a name). If it is None, ``shape`` is a folder with
    the configuration of a model that gets random weights. ``environment`` is the folder of the environment that the
    server is installed in, or a command.
    """

    dialect: Dialect
    environment: str
    model: str | None
    shape: Path
    flags: tuple[str, ...]
    log: Path

    @property
    def loaded(self) -> str:
        return str(self.shape) if self.model is None else self.model


def make_shape(wanted: Wanted) -> None:
    """Create the folder with Qwen3-8B's shape if it is wanted and missing. For transformers it gets weights, too.

    Raises:
        InputError: if the server's environment can't do it.
    """
    weights = wanted.dialect == "transformers"
    made = wanted.shape / ("model.safetensors.index.json" if weights else "config.json")
    if wanted.model is not None or wanted.shape != SHAPE or made.exists():
        return
    python, script = _command(wanted, "python"), ROOT / "tools" / "make_model_shape.py"
    command = [python, str(script), str(SHAPE), *(["--weights"] if weights else [])]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(
            f"{SHAPE}: could not be made ({error}); name the server's environment: --environment"
        ) from error


def sizes(shape: Path) -> tuple[int, int]:
    """The sizes of a model's context, at most `MOST_CONTEXT`, and of its vocabulary, in tokens.

    Raises:
        InputError: if the folder has no configuration.
    """
    file = shape / "config.json"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return min(MOST_CONTEXT, int(content["max_position_embeddings"])), int(content["vocab_size"])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{file}: not a model's configuration ({error}); name a folder with one as --shape") from error


@asynccontextmanager
async def engine(wanted: Wanted) -> AsyncGenerator[Engine]:
    """Run a server of this model until the block ends."""
    context, vocabulary = sizes(wanted.shape) if wanted.model is None else (MOST_CONTEXT, 0)
    started = _vllm(wanted, context) if wanted.dialect == "vllm" else _transformers(wanted)
    async with started as url:
        # transformers knows the model only by the path or name it was loaded from
        model = NAME if wanted.dialect == "vllm" else wanted.loaded
        yield Engine(url, model, wanted.dialect, context, vocabulary)


@asynccontextmanager
async def _vllm(wanted: Wanted, context: int) -> AsyncGenerator[str]:
    made_up = () if wanted.model is not None else ("--load-format=dummy",)
    settings = VLLMSettings(
        executable=wanted.environment,
        model=wanted.loaded,
        flags=(*made_up, f"--max-model-len={context}", *wanted.flags),
        startup_seconds=STARTUP_SECONDS,
        restarts=0,
    )
    async with serve_vllm(NAME, settings, log=wanted.log, on_event=_tell) as urls:
        yield urls[0]


@asynccontextmanager
async def _transformers(wanted: Wanted) -> AsyncGenerator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [_command(wanted, "transformers"), "serve", wanted.loaded, "--continuous-batching", "--dtype=bfloat16"]
    command += ["--host=127.0.0.1", f"--port={port}", *wanted.flags]
    url = f"http://127.0.0.1:{port}/v1"
    server = Server(command, dict(os.environ), url, wanted.log, STARTUP_SECONDS, 20.0, inf, Pulse(), _tell)
    await anyio.to_thread.run_sync(wanted.log.touch)
    try:
        await server.start()
        yield url
    finally:
        await server.stop()


def _command(wanted: Wanted, name: str) -> str:
    """The path of a command of the server's environment. If that is not a folder, the command is looked for beside
    vLLM's executable, or beside this Python for transformers.
    """
    folder = Path(wanted.environment)
    if folder.is_dir():
        return str(folder / "bin" / name)
    if wanted.dialect == "vllm":
        return str(find_executable(wanted.environment).parent / name)
    return str(Path(sys.executable).parent / name)


def _tell(news: ServerChange) -> None:
    print(news.detail, flush=True)
