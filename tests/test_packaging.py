"""The wheel holds every module of the tree: a package missing from the list is missing from the wheel without a word."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def tree_modules() -> set[str]:
    folders = {"flowevolve": "flowevolve", "stages": "flowevolve/stages", "policies": "flowevolve/policies"}
    found = set()
    for folder, installed in folders.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inside = path.relative_to(ROOT / folder)
            if folder == "flowevolve" and inside.parts[0] in ("stages", "policies"):
                continue
            found.add(f"{installed}/{inside.as_posix()}")
    return found


def test_wheel_holds_every_module(tmp_path: Path) -> None:
    source = tmp_path / "source"  # a copy: a build leaves files behind that the next one would take in
    for name in ("flowevolve", "stages", "policies"):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    assert {name for name in names if name.endswith(".py")} == tree_modules()
    assert "flowevolve/py.typed" in names
    assert "flowevolve/tasks/data/house_style.jsonl" in names


@pytest.mark.parametrize("folder", ["stages", "policies"])
def test_short_names_are_refused(folder: str) -> None:
    command = [sys.executable, "-c", f"import {folder}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"import this package as flowevolve.{folder}" in done.stderr
