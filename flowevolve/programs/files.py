"""Programs of several files, as the one source that the sandbox runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from flowevolve.programs import loader

_LOADER = Path(loader.__file__).read_text(encoding="utf-8")


def one_source(files: Mapping[str, str], main: str) -> str:
    """Python that does what the file ``main`` does beside the others: it can import them, but not open them."""
    if set(files) == {main}:
        return files[main]
    return f"{_LOADER}\n\nstart({dict(files)!r}, {main!r}, globals())\n"
