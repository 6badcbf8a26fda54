"""Where the repository, and the rows that some benches read, are on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The folder of the checkout."""
DATA = Path(os.environ.get("FLOWEVOLVE_DATA") or ROOT.parent / "shared" / "data")
"""The folder with rows of public data sets, which are not in the repository."""


def lacking(files: Sequence[str], folder: Path = DATA) -> str | None:
    """What to say if some of these files are not in the folder with the rows; None if all are."""
    missing = next((file for file in files if not (folder / file).is_file()), None)
    if missing is None:
        return None
    return (
        f"{folder / missing}: no such file; docs/reproduce.md says which rows these are, and FLOWEVOLVE_DATA may name "
        "the folder that has them"
    )
