"""The run that most parts measure: its settings, its configuration file, its command and its server."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import tomli_w

from bench._lib.paths import ROOT

CONCURRENCY = 32
"""The most calls that a run may have in flight."""
KEY = "FLOWEVOLVE_BENCH_KEY"
"""The environment variable with the API key: it tells the server's log which process asked."""
SETTINGS: Mapping[str, object] = {
    "algorithm": {"name": "gepa", "mode": "stream", "max_in_flight": 12, "merge": True},
    "staleness": {"policy": "reflective"},
    "speculation": {"alpha": {"generate": 0.34, "evaluate": 0.3}, "reorder": True},
    "racing": {"policy": "confidence"},
}
COMMAND = (sys.executable, "-c", "from flowevolve.cli.app import main; main()")


@contextmanager
def server_process(log: Path, *options: str) -> Iterator[str]:
    """Start `server` in a process of its own; yields its address."""
    command = [sys.executable, "-m", "bench.durability.server", str(log), *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.send_signal(signal.SIGTERM)


def write_config(path: Path, url: str, settings: Mapping[str, object], **llm: object) -> None:
    """Write the configuration of a run against a `server_process`."""
    section = {"backend": "openai", "transport": "aiohttp", "model": "simulated", "base_url": url, "api_key_env": KEY}
    path.write_text(tomli_w.dumps({**settings, "llm": {**section, "concurrency": CONCURRENCY, **llm}}))
