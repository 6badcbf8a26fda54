"""The run that most parts measure: its settings, its configuration file, its command and its server."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from bench._lib.paths import ROOT

CONCURRENCY = 32
"""The most calls that a run may have in flight."""
KEY = "FLOWEVOLVE_BENCH_KEY"
"""The environment variable with the API key, by which the server's log tells which process asked."""
SETTINGS: Mapping[str, object] = {
    "algorithm": {"name": "gepa", "mode": "stream", "max_in_flight": 12, "merge": True},
    "staleness": {"policy": "reflective"},
    "speculation": {"alpha": {"generate": 0.34, "evaluate": 0.3}, "reorder": True},
    "racing": {"policy": "confidence"},
}
SYMPTOMS = str(ROOT / "bench" / "durability" / "symptoms.csv")
"""Made-up rows of a text and a label each, for harnesses."""
FLOWS: Mapping[str, object] = {"max_in_flight": 12}
PACKING: Mapping[str, object] = {
    "task": {"name": "program", "problem": "circle_packing_26"},
    "sandbox": {"timeout": 10},
}


@dataclass(frozen=True)
class KilledRun:
    """A run that is killed again and again: its settings except for models, its budget, and the world of its server."""

    settings: Mapping[str, object]
    budget: Mapping[str, int]
    world: str = "rules"


KILLED_RUNS: Mapping[str, KilledRun] = {
    "gepa": KilledRun(SETTINGS, {"proposals": 40}),
    "gepa with defaults": KilledRun({"algorithm": {"name": "gepa"}}, {"proposals": 60}),
    "gepa in lockstep": KilledRun({"algorithm": {"name": "gepa", "mode": "sync"}}, {"proposals": 12}),
    "combee": KilledRun({"algorithm": {"name": "combee", **FLOWS}}, {"proposals": 8}),
    "ace": KilledRun({"algorithm": {"name": "ace", **FLOWS}}, {"proposals": 40}),
    "meta_harness": KilledRun(
        {
            "algorithm": {"name": "meta_harness", **FLOWS},
            "task": {
                "name": "harness",
                "sets": {"symptoms": {"path": SYMPTOMS, "sizes": {"train": 12, "val": 8, "test": 4}}},
            },
        },
        {"proposals": 12},
        world="harness",
    ),
    "levi": KilledRun({"algorithm": {"name": "levi", **FLOWS}, **PACKING}, {"evaluations": 60}, "code"),
    "code_evolve": KilledRun({"algorithm": {"name": "code_evolve", **FLOWS}, **PACKING}, {"evaluations": 60}, "code"),
    "context_evolve": KilledRun(
        {"algorithm": {"name": "context_evolve", **FLOWS}, **PACKING}, {"evaluations": 60}, "code"
    ),
    "cse": KilledRun({"algorithm": {"name": "cse", **FLOWS}, **PACKING}, {"evaluations": 40}, "code"),
    "one_plus_lambda": KilledRun(
        {"algorithm": {"name": "one_plus_lambda", **FLOWS}, **PACKING}, {"evaluations": 60}, "code"
    ),
}
"""The runs that are killed, by name. The other parts of the bench run the first one, too."""
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
