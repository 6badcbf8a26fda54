"""Packages made up for tests, as pip leaves them: a module, and metadata with entry points."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent


def put_package(site: Path, name: str, code: str, points: Mapping[str, Mapping[str, str]]) -> None:
    """A package of one module. ``points`` holds what it brings, by group."""
    site.mkdir(exist_ok=True)
    (site / f"{name}.py").write_text(dedent(code))
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, named in points.items()
        for line in (f"[{group}]", *(f"{point} = {target}" for point, target in named.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")


def pip_install(source: Path, site: Path) -> None:
    """Install a package from its folder, without a network."""
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(site), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
