"""A program's text and tree as the world `code` edits them."""

from __future__ import annotations

import pytest

from flowevolve.sim.worlds.code.source import parse


@pytest.mark.parametrize("definition", ["def f():", "async def f():", "class f:"])
def test_the_decorators_of_a_definition_are_among_its_lines(definition: str) -> None:
    source = parse(f"x = 1\n@first\n@second\n{definition}\n    pass\n")
    assert source is not None
    assert source.lines_of(source.tree.body[1]) == ["@first", "@second", definition, "    pass"]
