"""How the coder of the world `code` moves, doubles and leaves out statements."""

from __future__ import annotations

import ast
import random

import pytest

from flowevolve.sim.worlds.code.source import parse
from flowevolve.sim.worlds.code.structure import change_statements


@pytest.mark.parametrize(
    "kept",
    [
        "def kept():\n    pass",
        "async def kept():\n    pass",
        "class kept:\n    pass",
        "import kept",
        "from kept import kept",
    ],
)
def test_definitions_and_imports_are_neither_left_out_nor_doubled(kept: str) -> None:
    source = parse(f"{kept}\nfirst = 1\nsecond = 2\n")
    assert source is not None
    wanted, changed = ast.unparse(ast.parse(kept)), 0
    for seed in range(100):
        text = change_statements(source, 1.0, random.Random(seed))
        if text is not None:
            changed += 1
            assert [ast.unparse(each) for each in ast.parse(text).body].count(wanted) == 1
    assert changed
