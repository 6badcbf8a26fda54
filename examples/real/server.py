"""A local vLLM on the CPU for as long as a ``with`` block lasts."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

START_SECONDS = 300.0
STOP_SECONDS = 20.0
SETTINGS = [
    "--dtype=bfloat16",
    "--max-model-len=4096",
    "--max-num-seqs=32",  # past that two cores gain nothing
    "--enforce-eager",  # compiling takes longer than a short run gains by it
    "--block-size=32",  # shorter shared prefixes hit the cache than with the CPU's default of 128
    "--enable-prefix-caching",  # all rollouts of a candidate share its prompt
    "--enable-prompt-tokens-details",  # so that cached tokens are in the usage
    "--scheduling-policy=priority",  # later stages first, as the engine asks
]
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # one process: two cores have nothing to share out
}


@contextmanager
def serving(venv: Path, model: Path, name: str, port: int, log: Path) -> Iterator[str]:
    """Start ``vllm serve``, wait until it is healthy, yield its base URL, and stop it with all its children.

    Raises:
        RuntimeError: if it dies or is not healthy in time; the log says why.
    """
    command = [str(venv / "bin" / "vllm"), "serve", str(model), "--served-model-name", name]
    command += ["--host", "127.0.0.1", "--port", str(port), *SETTINGS]
    environment = {**os.environ, **ENVIRONMENT, "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    with log.open("wb") as output:
        server = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        _wait_until_healthy(server, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        _stop(server)


def _wait_until_healthy(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"vllm ended with code {server.returncode} before it was ready; see {log}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1.0)
    raise RuntimeError(f"vllm was not ready after {START_SECONDS:.0f} s; see {log}")


def _stop(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            server.wait(STOP_SECONDS)
    try:
        os.killpg(server.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    server.wait()
