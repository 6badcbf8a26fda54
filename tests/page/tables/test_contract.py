"""The contract with the views, which are written in JavaScript, names every table and column."""

from __future__ import annotations

import re
from importlib.resources import files

from flowevolve.page.tables.contract import TABLES


def test_the_contract_names_every_table_and_column() -> None:
    contract = files("flowevolve.page").joinpath("static/README.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", contract, re.MULTILINE | re.DOTALL))
    named = {name: tuple(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) for name, text in sections.items()}
    assert named == {name: table.columns() for name, table in TABLES.items()}
