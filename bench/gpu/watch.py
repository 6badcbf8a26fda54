"""Samples a GPU's use while something runs, from one `nvidia-smi` process that writes a line at regular intervals."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from anyio.streams.text import TextReceiveStream

from flowevolve._util.tasks import beside

INTERVAL_MS = 500
_FIELDS = ("utilization.gpu", "memory.used", "power.draw")


@dataclass(frozen=True, slots=True)
class Sample:
    """``seconds`` is monotonic time, ``utilization`` the percentage of time in which a kernel ran; memory is in MiB."""

    seconds: float
    utilization: float
    memory: float
    watts: float


class Watch:
    """The samples of one GPU so far; none if there is no NVIDIA GPU."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def between(self, begun: float, ended: float) -> dict[str, float] | None:
        """The means, and the largest memory, between two times; None if there are no samples between them."""
        taken = [sample for sample in self.samples if begun <= sample.seconds <= ended]
        if not taken:
            return None
        return {
            "utilization_percent": _mean([sample.utilization for sample in taken]),
            "memory_mib": max(sample.memory for sample in taken),
            "watts": _mean([sample.watts for sample in taken]),
            "samples": len(taken),
        }


@asynccontextmanager
async def watch_gpu(index: int = 0) -> AsyncGenerator[Watch]:
    """Sample one GPU for as long as the block lasts."""
    watch = Watch()
    program = shutil.which("nvidia-smi")
    if program is None:
        yield watch
        return
    command = [program, f"--id={index}", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    async with await anyio.open_process([*command, f"--loop-ms={INTERVAL_MS}"], stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            async with beside() as tasks:
                tasks.start_soon(_read, TextReceiveStream(process.stdout), watch)
                yield watch
        finally:
            process.terminate()


async def _read(lines: TextReceiveStream, watch: Watch) -> None:
    rest = ""
    async for text in lines:
        *whole, rest = (rest + text).split("\n")
        now = anyio.current_time()
        watch.samples += [sample for line in whole if (sample := read_sample(line, now)) is not None]


def read_sample(line: str, seconds: float) -> Sample | None:
    """Read a line of `nvidia-smi`; None if a figure is missing in it (some GPUs don't report all)."""
    try:
        utilization, memory, watts = (float(cell) for cell in line.split(","))
    except ValueError:
        return None
    return Sample(seconds, utilization, memory, watts)


def gpu_name(index: int = 0) -> str | None:
    """The GPU's model and driver, or None if there is no GPU. Blocks for as long as `nvidia-smi` takes."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, f"--id={index}", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return answer.stdout.strip() or None if answer.returncode == 0 else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
