"""Where the repository is on this machine."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The folder of the checkout."""
