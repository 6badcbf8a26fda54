"""The best program of each run scored once more, in our sandbox, with the evaluator of the problem's folder."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.program_peers.folders import write_folder
from flowevolve.core.artifact import Artifact
from flowevolve.problems.folders.catalog import folder_problem
from flowevolve.programs.evaluator import with_readable_evaluator
from flowevolve.sandbox import Sandbox, SandboxSettings

SETTINGS = SandboxSettings(concurrency=1, timeout=60.0, memory_mb=2048, preload=())


async def rescored(problem: str, program: str) -> float | None:
    """The score of a program; None if it fails."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / problem
        folder.parent.chmod(0o755)  # the sandbox's user reads it
        write_folder(problem, "openevolve", folder)
        read = folder_problem(folder)
        async with Sandbox(with_readable_evaluator(SETTINGS, read)) as sandbox:
            verdict = await read.judge(Artifact({read.file: program}, kind="program"), read.cases[0], sandbox)
    return verdict.value if verdict.failure is None else None
