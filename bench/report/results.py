"""The files in bench/results."""

from __future__ import annotations

import json
from pathlib import Path

from bench._lib.paths import ROOT
from bench._lib.text import Content

RESULTS = ROOT / "bench" / "results"


def read(name: str, results: Path = RESULTS) -> Content | None:
    """A bench's result, or None if it has not been run."""
    file = results / f"{name}.json"
    if not file.exists():
        return None
    content: Content = json.loads(file.read_text(encoding="utf-8"))
    return content
