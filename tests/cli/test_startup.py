"""What is slow to load is loaded when it is used: an import of the package, and its help, do without."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import flowevolve as fe

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

CTRL_C = """
import signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""
"""Presses Ctrl-C when the command line loads the package that it is made with."""


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


def _script() -> str:
    """What the command ``flowevolve`` does once the package is installed."""
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    module, _, function = pyproject["project"]["scripts"]["flowevolve"].partition(":")
    return f"from {module} import {function}; {function}()"


@pytest.mark.parametrize("command", [_script(), "import runpy; runpy.run_module('flowevolve', run_name='__main__')"])
def test_ctrl_c_while_the_program_is_still_loading_is_one_line(command: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"{CTRL_C}\n{command}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_type_checkers_see_the_names_that_the_package_has() -> None:
    tree = ast.parse(Path(fe.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    public = [name.asname for node in imports for name in node.names if name.asname is not None]
    assert sorted(vars(fe)["__all__"]) == sorted(public)
    assert all(hasattr(fe, name) for name in public)
