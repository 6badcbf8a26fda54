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
"""In lines for a shell: a variable that is assigned a literal text, and not something that the shell looks up on the
node.
"""


class SlurmSettings(OpenSettings):
    """Slurm jobs as nodes for programs. All further settings go to submitit's ``update_parameters`` unchanged."""

    executor: Literal["slurm", "local"] = "slurm"
    """``local``: jobs are processes on this machine, to try the setup without Slurm."""
    nodes: int = Field(default=1, gt=0, le=1000)
    """How many jobs are kept queued or running. Each is a node."""
    slots: int = Field(default=8, gt=0, le=1000)
    """How many programs a node runs at the same time, and how many cores its job asks for."""
    folder: Path = Path("slurm")
    """A folder for the logs of jobs, which this machine and all nodes share."""

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
    """All texts in a setting, at any depth."""
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
    """With ``ray``: the cluster's address, as HOST:PORT, or ``auto`` for the cluster that this machine belongs to. With
    ``slurm``: the address at which nodes reach this machine, as HOST or HOST:PORT, or ``auto`` for what its own name
    resolves to.
    """
    slurm: SlurmSettings = Field(default_factory=SlurmSettings)
    measure_on: str = ""
    """The class of machines that programs are measured on, given by the name of their processor. Empty: on a cluster,
    the class with the most slots when the run begins; otherwise this machine's. A resumed run keeps its class.
    """
    isolation: Literal["bubblewrap", "limits"] = "bubblewrap"
    """``limits``: resource limits only; a program can then read everything that you can read."""
    timeout: float = Field(default=10.0, gt=0, le=86400)
    """Seconds a program may take."""
    memory_mb: int = Field(default=512, gt=0, le=MOST_MB)
    """Memory of a program, including all its processes, files and sockets, beyond that of a bare interpreter."""
    disk_mb: int = Field(default=64, gt=0, le=MOST_MB)
    """The size of a program's ``/tmp``."""
    processes: int = Field(default=32, gt=0, le=MOST_PROCESSES)
    """The most processes and threads of one program."""
    output_kb: int = Field(default=64, gt=0)
    """How much of standard output is kept, and just as much of standard error."""
    result_kb: int = Field(default=1024, gt=0)
    """The largest result, as JSON."""
    concurrency: int = Field(default_factory=lambda: len(usable_cores()), gt=0)
    """How many programs run at the same time; by default, as many as there are usable cores."""
    preload: tuple[str, ...] = ("numpy",)
    """Modules that are imported before programs start, if they are installed."""
    evaluator: Literal["auto", "isolated", "shared"] = "auto"
    """Whether the evaluator of a problem folder or a command has a sandbox of its own (``isolated``) or shares the
    program's, which could then forge its own score (``shared``). ``auto``: its own, if the seed scores the same there.
    """
    readable: tuple[Path, ...] = ()
    """Folders that programs may read, with all their contents; `Sandbox.readable_at` gives their paths inside."""
