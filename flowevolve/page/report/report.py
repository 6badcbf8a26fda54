"""The report of a run: a single HTML file that contains everything and needs no network."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flowevolve._util.json_types import JSON
from flowevolve.journal.files import ELSEWHERE, PART, write_whole, writing
from flowevolve.page.assets import page
from flowevolve.page.blame.blame import ancestors, blame
from flowevolve.page.reading.source import RunSource, distinct, run_name
from flowevolve.page.report.texts import embedded_texts
from flowevolve.page.tables.candidates import CandidateRow, ComponentRow, ScoreRow
from flowevolve.page.tables.columns import in_columns
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow

REPORT = "report.html"
ROOM_OF_COMPONENTS = 12_000_000
"""The most characters of candidates' texts in a report, before compression."""
ROOM_OF_BLAME = 200_000
"""The most characters of candidates' texts for which a report says where their sentences came from."""


def write_report(directories: Sequence[Path], out: Path) -> Path:
    """Write the report of one run, or of several to be compared, and return its path.

    Raises:
        DamagedError: if a journal is damaged.
        InputError: if there is no run in a directory, or the file can't be written.
    """
    names = distinct([run_name(path) for path in directories])
    data = [_packed(_run(path, name)) for path, name in zip(directories, names, strict=True)]
    with writing(out, ELSEWHERE):
        out.with_name(out.name + PART).unlink(
            missing_ok=True
        )  # it may be a link: somebody else may have made the folder
        write_whole(out, [page(data).html])
    return out


def _run(path: Path, name: str) -> dict[str, JSON]:
    with RunSource(path, name) as source:
        tables = Tables(source.changes())
        tables.update(blame(tables, _blamed(tables), source.reply))
        texts = embedded_texts(source.recorded, tables)
    left_out: list[JSON] = [*_bound_components(tables), *texts.left_out]
    if left_out:
        left_out.append("flowevolve watch shows them; in a run of days, those of the latest requests.")
    return {"name": name, "tables": in_columns(tables), "texts": texts.texts, "left_out": left_out}


def _best_and_front(tables: Tables) -> list[str]:
    """The best candidate, and then those that are the best on some example."""
    best: dict[str, ScoreRow] = {}
    confirmed = {each.id for each in tables.of(CandidateRow) if each.status == "confirmed"}
    for row in tables.of(ScoreRow):
        known = best.get(row.example)
        if row.source == "validation" and row.candidate in confirmed and (known is None or row.value > known.value):
            best[row.example] = row
    first = next(tables.of(RunRow)).best
    return list(dict.fromkeys([*([] if first is None else [first]), *(each.candidate for each in best.values())]))


def _bound_components(tables: Tables) -> list[str]:
    """Leave out texts of candidates for which there is no room, those of unconfirmed ones first; returns a sentence on
    that.
    """
    status = {each.id: each.status for each in tables.of(CandidateRow)}
    rows = sorted(tables.of(ComponentRow), key=lambda each: status.get(each.candidate) != "confirmed")
    room, left_out = ROOM_OF_COMPONENTS, 0
    for row in rows:
        room -= row.characters
        if room < 0:
            tables.update([replace(row, text=None)])
            left_out += 1
    return [f"{left_out:,} of {len(rows):,} texts of candidates are not in this file."] if left_out else []


def _blamed(tables: Tables) -> list[str]:
    """The best candidate, all that it was made from, the front, and the other accepted ones, with high scores first: as
    many as there is room for.
    """
    rows = {row.id: row for row in tables.of(CandidateRow)}
    front = _best_and_front(tables)
    behind = [row.id for row in ancestors(tables, front[:1])]
    accepted = [row.id for row in rows.values() if row.status in ("confirmed", "speculative")]
    by_score = sorted(accepted, key=lambda name: -(rows[name].score or 0.0))
    chosen, room = list[str](), ROOM_OF_BLAME
    for name in dict.fromkeys([*front[:1], *reversed(behind), *front, *by_score]):
        room -= rows[name].length
        if room > 0 or not chosen:
            chosen.append(name)
    return chosen


def _packed(data: JSON) -> str:
    written = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return b64encode(gzip.compress(written.encode(), mtime=0)).decode()
