"""The real benchmark rows that some tests read, which are not in the repository."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

ON_PURPOSE = "none"
"""What FLOWEVOLVE_DATA is where these tests are to be left out."""


def find_data(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder beside the repository, or the one that FLOWEVOLVE_DATA names.

    Where it is missing a test that asks for it is skipped, and in continuous integration it fails: nobody reads there
    what was skipped.
    """
    named = environ.get("FLOWEVOLVE_DATA", "")
    if named == ON_PURPOSE:
        pytest.skip("FLOWEVOLVE_DATA says that there is no benchmark data")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    if folder.is_dir():
        return folder
    missing = f"there is no benchmark data in {folder}"
    if environ.get("CI") == "true":
        pytest.fail(
            f"{missing}: put it there, name its folder in FLOWEVOLVE_DATA, or set FLOWEVOLVE_DATA={ON_PURPOSE} to leave "
            "the tests out that read it",
            pytrace=False,
        )
    pytest.skip(missing)
