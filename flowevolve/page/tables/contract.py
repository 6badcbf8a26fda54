"""The tables that the page is drawn from: their names, their keys, and the names and units of their columns.

Each class is a table and each field a column. They are the contract between the projection, which fills the tables from
the journal, and the views, which are written in JavaScript and read nothing else. A row replaces the earlier row with
the same key. A column may be added; none is renamed or changes its meaning.

Times are seconds since the run began, by the run's own clock. A missing value is None, which JavaScript has as null.
"""

from __future__ import annotations

from flowevolve.page.tables.candidates import (
    BatchRow,
    BlameRow,
    CandidateRow,
    CellRow,
    ComponentRow,
    CurveRow,
    GroupRow,
    JudgementRow,
    ScoreRow,
)
from flowevolve.page.tables.row import Row
from flowevolve.page.tables.run import LogRow, MoveRow, RunRow, ServerRow, StageRow
from flowevolve.page.tables.work import CallRow, SpanRow

_ROWS: tuple[type[Row], ...] = (
    RunRow,
    StageRow,
    CallRow,
    SpanRow,
    CandidateRow,
    BatchRow,
    ComponentRow,
    ScoreRow,
    CurveRow,
    JudgementRow,
    GroupRow,
    ServerRow,
    MoveRow,
    CellRow,
    BlameRow,
    LogRow,
)

TABLES = {row.table: row for row in _ROWS}
"""The tables by name."""
