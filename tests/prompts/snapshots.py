"""The snapshots of what is written from templates: a text file for each. Run this to write them anew."""

from __future__ import annotations

from pathlib import Path

from tests.prompts.samples import SAMPLES

FOLDER = Path(__file__).parent / "snapshots"


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def write() -> None:
    """Write all snapshots, and remove those of templates that are gone."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.txt"):
        if old.stem not in SAMPLES:
            old.unlink()
    for name, sample in SAMPLES.items():
        path_of(name).write_text(f"{sample()}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
