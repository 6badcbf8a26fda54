"""The end mark: a small file beside the journal that says how far the journal had come at the last commit.

SQLite can't tell a write-ahead log that was cut short from one that ends there. The mark can: a journal that ends
before its mark has lost something. The mark is written after the commit and before anybody learns of the commit. So
after a kill the journal may be a transaction ahead of its mark, but never behind it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

END_MARK_SUFFIX = ".end"
END_MARK = f"journal{END_MARK_SUFFIX}"


@dataclass(frozen=True, slots=True)
class EndMark:
    """The id of a run, and the numbers of its last event and its last call: -1 and 0 if there was none."""

    run: str
    event: int
    call: int

    def line(self) -> bytes:
        """The content of the file. Its length is always the same, because the ids of runs all have one length."""
        content = f"{self.run} {self.event:20} {self.call:20}".encode()
        return b"%s %08x\n" % (content, crc32(content))


def read_end_mark(folder: Path) -> EndMark | None:
    """The mark in a run directory; None if there is none, as in one of an earlier version, or it can't be read."""
    try:
        line = (folder / END_MARK).read_bytes()
        content, _, _ = line.rpartition(b" ")
        run, event, call = content.decode("ascii").split()
        mark = EndMark(run, int(event), int(call))
    except (OSError, ValueError):
        return None
    return mark if line == mark.line() else None


class EndMarkFile:
    """Writes the mark of a run. If a write fails, which a full disk can't cause, the mark stays behind the journal."""

    def __init__(self, path: Path, mark: EndMark) -> None:
        self._run = mark.run
        path.touch()
        self._file = path.open("r+b", buffering=0)
        self._file.write(mark.line())

    def move(self, event: int, call: int) -> None:
        """Note the numbers of the last event and the last call."""
        with suppress(OSError):
            self._file.seek(0)
            self._file.write(EndMark(self._run, event, call).line())

    def close(self) -> None:
        """Calling this twice does no harm."""
        self._file.close()
