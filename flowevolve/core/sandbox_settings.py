"""The ``[sandbox]`` table of a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from flowevolve._util.cores import usable_cores
from flowevolve._util.secrets import key_among
from flowevolve._util.settings import OpenSettings, Settings

MOST_MB = 2**24
"""16 TB: more than any machine has, and far below the largest value of a kernel limit."""
MOST_PROCESSES = 2**22
"""The kernel's highest limit."""
_ASSIGNMENT = re.compile(r"\b(\w+)=(['\"]?[^\s$'\"][^\s,]*)")
"""Of a variable in lines for a shell, to a text and not to what the shell finds on the node."""


class SlurmSettings(OpenSettings):
    """The jobs that are nodes for programs. All other settings go to submitit's ``update_parameters`` as they are."""

    executor: Literal["slurm", "local"] = "slurm"
    """``local``: jobs are processes of this machine, to try it without Slurm."""
    nodes: int = Field(default=1, gt=0, le=1000)
    """Jobs that are kept queued or at work, each of which is a node."""
    slots: int = Field(default=8, gt=0, le=1000)
    """Programs that a node runs at the same time, and the cores that its job asks for."""
    folder: Path = Path("slurm")
    """A folder that this machine and all nodes share, for the logs of jobs."""

    @model_validator(mode="after")
    def _without_key(self) -> Self:
        assigned = dict(pair for text in _texts(self.settings) for pair in _ASSIGNMENT.findall(text))
        key = key_among(self.settings) or key_among(assigned)
        if key is not None:
            raise ValueError(
                f"{key!r} seems to be a key, which would be kept with the run: have it read on the nodes, such as by "
                f'slurm_setup = ["export {key}=$(cat FILE)"]'
            )
        return self


def _texts(value: object) -> Iterator[str]:
    """All texts in a setting."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


class SandboxSettings(Settings):
    """How programs are isolated, and their limits where a run does not set its own."""

    on: Literal["here", "ray", "slurm"] = "here"
    """Where programs run: on this machine, on the nodes of a Ray cluster, or in jobs of Slurm."""
    address: str = "auto"
    """With ``ray``: the cluster's, as HOST:PORT, or ``auto`` for the one that this machine belongs to. With ``slurm``:
    where nodes reach this machine, as HOST or HOST:PORT, or ``auto`` for what its own name stands for.
    """
    slurm: SlurmSettings = Field(default_factory=SlurmSettings)
    measure_on: str = ""
    """The class of machines that programs are measured on, by the name of their processor. Empty: on a cluster, that
    which most slots have as the run begins; else this machine's. What is resumed keeps its class.
    """
    isolation: Literal["bubblewrap", "limits"] = "bubblewrap"
    """``limits``: resource limits only; a program can then read everything that you can read."""
    timeout: float = Field(default=10.0, gt=0, le=86400)
    """Seconds a program may take."""
    memory_mb: int = Field(default=512, gt=0, le=MOST_MB)
    """Memory of a program, all its processes, files and sockets together, beyond that of a bare interpreter."""
    disk_mb: int = Field(default=64, gt=0, le=MOST_MB)
    """The size of its ``/tmp``."""
    processes: int = Field(default=32, gt=0, le=MOST_PROCESSES)
    """The most processes and threads of one program."""
    output_kb: int = Field(default=64, gt=0)
    """How much is kept of standard output, and as much of standard error."""
    result_kb: int = Field(default=1024, gt=0)
    """The largest result, as JSON."""
    concurrency: int = Field(default_factory=lambda: len(usable_cores()), gt=0)
    """Programs that run at the same time; by default as many as there are cores."""
    preload: tuple[str, ...] = ("numpy",)
    """Modules that are imported before programs start, if they are installed."""
    evaluator: Literal["auto", "isolated", "shared"] = "auto"
    """Whether the evaluator of a problem folder or a command has a sandbox of its own (``isolated``), or that of the
    program, which could then forge its own score (``shared``). ``auto``: its own if the seed scores the same so.
    """
    readable: tuple[Path, ...] = ()
    """Folders that programs may read, with all their contents; `Sandbox.readable_at` gives their paths inside."""
