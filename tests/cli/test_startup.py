"""What is slow to load is loaded when it is used: an import of the package, and its help, do without."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import flowevolve

HEAVY = (
    "aiohttp",
    "gepa",
    "httpx2",
    "matplotlib",
    "model2vec",
    "numpy",
    "openai",
    "prometheus_client",
    "pyarrow",
    "qdrant_client",
    "ribs",
    "scipy",
    "structlog",
    "yaml",
    "flowevolve.algorithms",
    "flowevolve.engine",
    "flowevolve.problems.base",
    "flowevolve.programs",
    "flowevolve.runner",
    "flowevolve.sandbox.pool",
    "flowevolve.sim.backend",
    "flowevolve.tasks.catalog",
)
"""Modules that a start has no use for: of other packages, and of our own those that one run in a few needs."""

HELP = (
    "import contextlib\nwith contextlib.suppress(SystemExit):\n    from flowevolve.cli.app import app; app(['--help'])"
)


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("import flowevolve", ["rich", "typer"]),
        (HELP, []),
    ],
    ids=["import", "help"],
)
def test_a_start_loads_nothing_that_is_slow_and_not_needed_yet(code: str, more: list[str]) -> None:
    names = [*HEAVY, *more]
    asking = f"{code}\nimport sys\nprint('loaded:', *sorted(set({names!r}) & sys.modules.keys()))"
    said = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "loaded:"


def test_what_type_checkers_see_can_be_had() -> None:
    tree = ast.parse(Path(flowevolve.__file__).read_text(encoding="utf-8"))
    shown = next(node for node in tree.body if isinstance(node, ast.If))
    names = {alias.name for node in shown.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert names == set(flowevolve._HOMES)
    assert all(hasattr(flowevolve, name) for name in names)
    assert not hasattr(flowevolve, "optimise")
