"""Modules of the product by their names, and where the tests nearest to each are."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
from collections.abc import Sequence
from pathlib import Path

from tools.mutate.changes import Source

TESTS = Path("tests")


def sources(names: Sequence[str]) -> list[Source]:
    """The modules with these names and those in the packages with these names."""
    return [_source(module) for name in names for module in _modules(name)]


def _modules(name: str) -> list[str]:
    package = importlib.import_module(name)
    inside = pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}.")
    return [name, *(each.name for each in inside)]


def _source(name: str) -> Source:
    path = os.path.relpath(inspect.getfile(importlib.import_module(name)))
    return Source(name, path, ast.parse(Path(path).read_text(encoding="utf-8")))


def room(module: str) -> Path:
    """The folder with all tests that are near to a module: tests/engine for flowevolve.engine.recovery.state."""
    return TESTS / module.split(".")[1]


def distance(module: str, test_file: Path) -> int:
    """How far a test file is from a module: 0 for its own, 1 for one in the same folder, 2 for others."""
    *folders, name = module.split(".")[1:]
    folder = TESTS.joinpath(*folders)
    if test_file == folder / f"test_{name}.py":
        return 0
    return 1 if test_file.parent == folder else 2
