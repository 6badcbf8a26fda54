"""The command that starts a vLLM: its executable, its flags and its environment.

`evolution_flags` chooses flags that suit evolution, with the reason for each. The user's own flags override them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve.core.model_families import family_of
from flowevolve.vllm.settings import VLLMSettings, has_flag

LARGE_GPU_GIB = 70
QUEUED_REQUESTS = 4096
MOST_CACHE_GIB = 16


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that a server will run on. ``gpu_gib`` is the memory of its smallest GPU in GiB; None: not known."""

    has_gpu: bool
    gpu_gib: float | None
    cores: int
    free_gib: float | None
    """Main memory that is not in use, in GiB; None: not known."""


def inspect_machine() -> Machine:
    """Find out about this machine. Blocks for as long as ``nvidia-smi`` takes, at most 30 seconds."""
    memories = _gpu_memories()
    return Machine(
        has_gpu=bool(memories) or Path("/dev/kfd").exists(),  # the latter is AMD's
        gpu_gib=min(memories, default=None),
        cores=os.cpu_count() or 1,
        free_gib=_free_memory(),
    )


def find_executable(named: str) -> Path:
    """The ``vllm`` command that ``vllm.executable`` names: on the path, beside this Python, or in an environment.

    Raises:
        InputError: if there is no such command.
    """
    place = Path(named).expanduser()
    if place.is_dir():
        found = shutil.which("vllm", path=str(place / "bin"))
    elif place.name == named:
        found = shutil.which(named) or shutil.which(named, path=str(Path(sys.executable).parent))
    else:
        found = shutil.which(str(place))
    if found is None:
        raise InputError(
            f"vllm.executable: there is no command {named!r}; install vLLM with pip install 'flowevolve[vllm]', "
            "or a build for the CPU into an environment of its own, and name its command or environment"
        )
    return Path(found).absolute()


def on_cpu(settings: VLLMSettings, machine: Machine) -> bool:
    return settings.device == "cpu" or (settings.device == "auto" and not machine.has_gpu)


def evolution_flags(settings: VLLMSettings, machine: Machine) -> list[tuple[str, ...]]:
    """Flags that suit evolution on this machine."""
    flags: list[tuple[str, ...]] = [
        ("--enable-prefix-caching",),  # all rollouts of a candidate begin with its prompt
        ("--enable-prompt-tokens-details",),  # usage then says how many tokens came from the cache
        ("--scheduling-policy", "priority"),  # nearly finished items go first, in the order of our own scheduler
        # Beyond it, requests are refused and retried later, so that the queue can't grow without end.
        ("--max-num-queued-reqs", str(QUEUED_REQUESTS)),
        ("--disable-uvicorn-access-log",),  # a line for each request would hide the lines that matter
    ]
    if on_cpu(settings, machine):
        flags += [
            ("--block-size", "32"),  # a shared prefix is cached in whole blocks, of 128 tokens by default on the CPU
            ("--max-num-seqs", str(min(256, 16 * machine.cores))),  # more would only slow each of them down
            # vLLM 0.32 on the CPU crashes when a request with a sampling seed is prefilled in several chunks.
            ("--no-enable-chunked-prefill",),
        ]
    elif machine.gpu_gib is not None:
        # vLLM's defaults for servers favour the latency of the first token; these are its defaults for offline use.
        flags.append(("--max-num-batched-tokens", "16384" if machine.gpu_gib >= LARGE_GPU_GIB else "8192"))
    return flags


def serve_arguments(
    executable: Path, settings: VLLMSettings, machine: Machine, *, model: str, served_as: str, port: int
) -> list[str]:
    """The whole command that starts one server."""
    command = [str(executable), "serve", model, "--served-model-name", served_as]
    command += ["--host", settings.host, "--port", str(port)]
    if settings.defaults:
        for flag in [*evolution_flags(settings, machine), *_reasoning_flags(model, served_as)]:
            if not has_flag(settings.flags, flag[0]):
                command += flag
    return [*command, *settings.flags]


def _reasoning_flags(*names: str) -> list[tuple[str, ...]]:
    """Flags that separate thinking from answers, if one of these names is that of a model known to think."""
    family = next((family for name in names if (family := family_of(name)) is not None), None)
    return [] if family is None or family.parser is None else [("--reasoning-parser", family.parser), *family.flags]


def serve_environment(
    executable: Path,
    settings: VLLMSettings,
    machine: Machine,
    replica: int,
    inherited: Mapping[str, str],
    api_key: str | None = None,
) -> dict[str, str]:
    """The environment variables of one server. What the user has set anywhere overrides our defaults.

    ``api_key`` is passed in this way, as every user of the machine can read command lines.
    """
    ours = {"VLLM_NO_USAGE_STATS": "1"}  # no usage reports
    if on_cpu(settings, machine) and settings.defaults and not has_flag(settings.flags, "--kv-cache-memory-bytes"):
        # By default, vLLM takes 92 % of all memory, and does not start where other programs use some of it.
        ours["VLLM_CPU_KVCACHE_SPACE"] = str(_cache_gib(machine, settings.replicas))
    environment = {**ours, **inherited, **settings.environment}
    if api_key is not None:
        environment["VLLM_API_KEY"] = api_key
    if settings.devices:
        environment["CUDA_VISIBLE_DEVICES"] = settings.devices[replica]
    # vLLM runs compilers and helpers by name, which are installed in its own environment.
    environment["PATH"] = f"{executable.parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
    return environment


def _cache_gib(machine: Machine, replicas: int) -> int:
    """A quarter of the free memory, shared among the replicas, in whole GiB."""
    share = 0.0 if machine.free_gib is None else machine.free_gib / 4 / replicas
    return max(1, min(MOST_CACHE_GIB, int(share)))


def _free_memory() -> float | None:
    """The memory available without swapping, in GiB; None where the system does not report it."""
    try:
        found = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(encoding="utf-8"))
    except OSError:
        return None
    return None if found is None else int(found[1]) / 2**20


def _gpu_memories() -> list[float]:
    """The memory of each NVIDIA GPU in GiB; empty if ``nvidia-smi`` gives no answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603 - ours
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [int(line) / 1024 for line in answer.stdout.split() if line.isdigit()] if answer.returncode == 0 else []
