"""What a sandbox allows."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from flowevolve._util.cores import usable_cores
from flowevolve.section import Section

MOST_MB = 2**24
"""16 TB: more than there is, and far less than a limit of the kernel's holds."""
MOST_PROCESSES = 2**22
"""The kernel has no more."""


class SandboxSettings(Section):
    """The ``[sandbox]`` table: how programs are kept apart, and their limits unless a run of one says otherwise."""

    isolation: Literal["bubblewrap", "limits"] = "bubblewrap"
    """``limits``: resource limits alone; a program can then read what you can read."""
    timeout: float = Field(default=10.0, gt=0, le=86400)
    """Seconds a program may take."""
    memory_mb: int = Field(default=512, gt=0, le=MOST_MB)
    """What a program may use beyond what a bare interpreter does; all its processes together."""
    disk_mb: int = Field(default=64, gt=0, le=MOST_MB)
    """What it may write to its ``/tmp``."""
    processes: int = Field(default=32, gt=0, le=MOST_PROCESSES)
    """Processes and threads of one program."""
    output_kb: int = Field(default=64, gt=0)
    """Of standard output and of errors, each, that is kept."""
    result_kb: int = Field(default=1024, gt=0)
    """Of a result, as JSON."""
    concurrency: int = Field(default_factory=lambda: len(usable_cores()), gt=0)
    """Programs at a time; by default as many as there are cores."""
    preload: tuple[str, ...] = ("numpy",)
    """Modules that are imported before a program starts, where they are installed."""
    readable: tuple[Path, ...] = ()
    """Folders of yours that programs may read, with all that is in them; `Sandbox.readable_at` says where they are."""
