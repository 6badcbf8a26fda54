"""How long a process had to wait for a core, which tells whether others held it up."""

from __future__ import annotations

from pathlib import Path


def waited(process: int) -> float:
    """Seconds that the threads of a process have been ready to run and had no core; 0 where no kernel counts them."""
    nanoseconds = 0
    for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
        try:
            nanoseconds += int(thread.read_text().split()[1])
        except OSError:
            continue  # it has ended meanwhile
    return nanoseconds / 1e9
