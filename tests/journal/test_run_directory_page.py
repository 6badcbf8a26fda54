"""The page about the run directory has its files, the columns of the journal and of an export, and the payloads."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest

import flowevolve.compat.gepa  # noqa: F401  its payloads are registered as it is imported
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.payload_kinds import registered
from flowevolve.journal.export import export
from flowevolve.journal.tables import make_tables
from flowevolve.page.report.report import write_report
from flowevolve.runner.registries import ALGORITHMS
from flowevolve.runner.run import run
from tests.support.field_tables import Entry, entries, fits, section

PAGE = "run-directory.md"
JSON_TYPES = {"INTEGER": "integer", "REAL": "number", "TEXT": "text", "BLOB": "bytes", "": "text"}
"""The types of SQLite's columns as the page calls them. A text that is long is stored as bytes."""


def cells(text: str) -> list[list[str]]:
    """The rows of the tables in a text that begin with something in backticks."""
    return [
        [each.strip() for each in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that has ended, with everything that is made of it by default."""
    path = tmp_path_factory.mktemp("run")
    config = parse_config({"clock": "virtual", "budget": {"proposals": 4}}, "test")

    async def go() -> None:
        await run(config, out=path, events=True)

    clock.run(go, clock="virtual")
    export(path)
    write_report([path], path / "report.html")
    return path


def test_all_files_of_a_run_are_listed(folder: Path) -> None:
    listed = {name.removesuffix("/") for row in cells(section(PAGE, "The run directory")) for name in named(row[0])}
    assert {each.name for each in folder.iterdir()} <= listed


def test_the_tables_of_the_journal_have_their_columns(folder: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        make_tables(database, "", "[]")
        tables = {
            table: {
                name: JSON_TYPES[kind] + ("" if not_null or in_key else " or null")
                for _, name, kind, not_null, _, in_key in database.execute(f"PRAGMA table_info({table})")
            }
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    with closing(sqlite3.connect(folder / "journal.sqlite")) as database:
        keys = {key for (key,) in database.execute("SELECT key FROM meta")}
    assert set(re.findall(r"^\| \[`(\w+)`\]\(", section(PAGE, "The journal"), re.MULTILINE)) == set(tables)
    assert tables.pop("meta") == {"key": "text", "value": "text"}
    assert {name for row in cells(section(PAGE, "Meta")) for name in named(row[0])} == keys
    for table, columns in tables.items():
        assert entries(section(PAGE, table.capitalize())) == [Entry(table, columns)]


def test_an_export_has_its_columns(folder: Path) -> None:
    listed = entries(section(PAGE, "Exporting"))
    assert {each.name for each in listed} == {each.stem for each in (folder / "export").glob("*.jsonl")}
    for table in listed:
        lines = (folder / "export" / f"{table.name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        assert rows
        for row in rows:
            assert list(row) == list(table.types)
            assert all(fits(value, table.types[name]) for name, value in row.items()), row


def test_payloads_have_their_fields() -> None:
    for name in ALGORITHMS.builtin:
        ALGORITHMS.find(name, "algorithm.name")
    wanted = {
        each.name: [] if each.opaque else [field.name for field in fields(each.type) if field.init]
        for each in registered()
        if each.type.__module__.startswith(("flowevolve.", "gepa."))  # not what tests and examples register
    }
    assert {named(row[0])[0]: named(row[1]) for row in cells(section(PAGE, "Types of payloads"))} == wanted
