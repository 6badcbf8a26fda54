"""The report of a run: one file of HTML that has everything in it and needs no network."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from flowevolve._util.json_types import JSON
from flowevolve.journal.files import write_whole, writing
from flowevolve.page.assets import page
from flowevolve.page.blame import blame
from flowevolve.page.columns import in_columns
from flowevolve.page.memory import Tables
from flowevolve.page.source import RunSource, distinct_names
from flowevolve.page.tables import CandidateRow, RunRow
from flowevolve.page.texts import embedded_texts

REPORT = "report.html"
ROOM_FOR_BLAME = 200_000
"""Characters of texts whose sentences are blamed in a report."""


def write_report(directories: Sequence[Path], out: Path) -> Path:
    """Write the report of one run, or of several to be compared, and return its path.

    Raises:
        DamagedError: if a journal is damaged.
        InputError: if there is no run in a directory, or the file can't be written.
    """
    data = [_packed(_run(path, name)) for name, path in distinct_names(directories).items()]
    with writing(out):
        write_whole(out, [page(data).html])
    return out


def _run(path: Path, name: str) -> dict[str, JSON]:
    with RunSource(path, name) as source:
        tables = Tables(source.changes())
        run = next(tables.of(RunRow))
        tables.update(blame(tables, _blamed(tables, run.best), source.reply))
        texts = embedded_texts(source.recorded, tables)
        return {"name": run.name, "tables": in_columns(tables), "texts": texts.texts, "left_out": texts.left_out}


def _blamed(tables: Tables, best: str | None) -> list[str]:
    """The candidates whose blame a report has in it: the best one and the others that were accepted, as many as there
    is room for, those with the highest scores first.
    """
    accepted = [row for row in tables.of(CandidateRow) if row.status in ("confirmed", "speculative")]
    chosen, room = list[str](), ROOM_FOR_BLAME
    for row in sorted(accepted, key=lambda row: (row.id != best, -(row.score or 0.0), row.place)):
        room -= row.length
        if room > 0 or row.id == best:
            chosen.append(row.id)
    return chosen


def _packed(data: JSON) -> str:
    written = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return b64encode(gzip.compress(written.encode(), mtime=0)).decode()
