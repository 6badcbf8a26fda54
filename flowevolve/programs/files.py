"""Joins programs of several files to the single source that the sandbox runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from flowevolve.programs import loader

_LOADER = Path(loader.__file__).read_text(encoding="utf-8")


def one_source(files: Mapping[str, str], main: str) -> str:
    """Python source that runs the file ``main``, which can import the other files, but not open them."""
    if set(files) == {main}:
        return files[main]
    return f"{_LOADER}\n\nstart({dict(files)!r}, {main!r}, globals())\n"
