"""Tables as Parquet hold what the rows held."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.journal.export_files import ROWS, Parquet

COLUMNS = {
    "id": "integer",
    "text": "text",
    "parents": "texts",
    "scores": "numbers by name",
    "attributes": "json",
    "messages": "messages",
    "cached": "yes or no",
}


def row(number: int) -> dict[str, object]:
    return {
        "id": number,
        "text": "lone \ud800" if number == 1 else None,
        "parents": ["a", "b"][: number % 3],
        "scores": {"e1": 0.5, "e2": number / 2},
        "attributes": {"nested": [number, None]},
        "messages": [{"role": "user", "content": "hé"}] if number % 2 else None,
        "cached": number % 2 == 0,
    }


def test_rows_come_back(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = Parquet(tmp_path / "x.parquet", COLUMNS)
    for number in range(ROWS + 5):
        table.write(row(number))
    assert table.rows == ROWS + 5
    table.close()
    read = parquet.read_table(tmp_path / "x.parquet").to_pylist()
    assert [each["id"] for each in read] == list(range(ROWS + 5))
    assert dict(read[3]["scores"]) == {"e1": 0.5, "e2": 1.5}
    assert read[3]["messages"] == [{"role": "user", "content": "hé"}]
    assert read[2]["messages"] is None
    assert read[1]["text"].startswith("lone ")
    assert (read[0]["text"], read[0]["parents"], read[2]["parents"]) == (None, [], ["a", "b"])
    assert read[4]["attributes"] == '{"nested": [4, null]}'


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'flowevolve\[parquet\]'"):
        Parquet(tmp_path / "x.parquet", COLUMNS)
    assert list(tmp_path.iterdir()) == []
