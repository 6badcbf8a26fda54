"""A real vLLM on this machine's CPU with SmolLM2-135M, for benches: the environment and model of ``examples/real``."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

from bench._lib.paths import ROOT
from flowevolve._util.errors import InputError
from flowevolve.vllm.serving import serve_vllm
from flowevolve.vllm.settings import VLLMSettings

VENV, MODEL, NAME = ROOT / ".venv-vllm", ROOT / ".models" / "smollm2-135m", "smollm2-135m"


@asynccontextmanager
async def smollm2(log: Path) -> AsyncGenerator[str]:
    """Serve SmolLM2-135M until the block ends; yields the base URL.

    Raises:
        InputError: if the environment or the model is not there.
    """
    for needed in (VENV / "bin" / "vllm", MODEL / "model.safetensors"):
        if not needed.exists():
            raise InputError(f"{needed}: is not there; examples/real/run.py makes it")
    settings = VLLMSettings(
        executable=str(VENV),
        model=str(MODEL),
        device="cpu",
        flags=("--dtype=bfloat16", "--max-model-len=4096", "--max-num-seqs=64", "--enforce-eager"),
        environment={
            "HF_HUB_OFFLINE": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_SERVER_DEV_MODE": "1",  # so that its prefix cache can be emptied between methods
        },
    )
    async with serve_vllm(NAME, settings, log=log, on_event=lambda news: print(news.detail, flush=True)) as urls:
        yield urls[0]


def served_model(url: str) -> str:
    """The first model that an API names. ``url`` is its base URL.

    Raises:
        InputError: if it names none.
    """
    try:
        with urlopen(url.rstrip("/") + "/models", timeout=30) as answer:  # noqa: S310 - the user's own server
            return str(json.load(answer)["data"][0]["id"])
    except (OSError, ValueError, LookupError) as error:
        raise InputError(
            f"--server {url}: no models can be read there ({error}); give the base URL of an API"
        ) from None
