"""Which folders of bench/ may use which, and what a bench's folder has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench._lib.paths import ROOT

BENCH = ROOT / "bench"
SHARED = {"_lib", "peers"}
BUILDS_ON = {
    "algorithms": {"ace", "meta_harness", "quality"},
    "all": {"report"},
    "nodes": {"evaluations"},
    "page": {"durability", "overhead"},
    "scale": {"overhead"},
    "sharing": {"scale"},
}
"""Benches that make the runs of others, so that both measure the same thing, each with those others."""
FOLDERS = sorted(path.parent.name for path in BENCH.glob("*/__init__.py"))
BENCHES = [name for name in FOLDERS if name not in SHARED]


def modules_imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def folders_imported(folder: Path) -> set[str]:
    """The folders of bench/ that a folder of the repository imports."""
    names = (name.split(".") for file in folder.rglob("*.py") for name in modules_imported(file))
    return {parts[1] if len(parts) > 1 else "bench" for parts in names if parts[0] == "bench"}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_imports_what_is_shared_and_little_else(name: str) -> None:
    allowed = {"_lib": {"peers"}, "peers": set[str](), "report": set(FOLDERS)}.get(name, SHARED)
    assert folders_imported(BENCH / name) <= {name} | allowed | BUILDS_ON.get(name, set())


def test_the_product_imports_no_bench() -> None:
    for folder in ("flowevolve", "stages", "policies"):
        assert folders_imported(ROOT / folder) == set()


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_is_a_command_that_says_what_it_measures(name: str) -> None:
    assert (BENCH / name / "__main__.py").exists()
    assert ast.get_docstring(ast.parse((BENCH / name / "__init__.py").read_text(encoding="utf-8")))


def test_modules_stand_in_folders() -> None:
    assert list(BENCH.glob("*.py")) == [BENCH / "__init__.py"]
