"""Mutation tests of a small project: which changes are made, and which of them its tests notice."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tools.mutate.changes import Source, changes_in

ROOT = Path(__file__).parents[2]


def changes(text: str) -> list[str]:
    source = Source("shop.till", "shop/till.py", ast.parse(dedent(text)))
    return [f"{change.old_text} → {change.new_text}" for change in changes_in(source)]


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("return a < 3", ["return a < 3 → return None", "a < 3 → a <= 3", "3 → 4"]),
        ("x = a and not b", ["a and (not b) → a or not b", "not b → b"]),
        ("if a: pass", ["if a: → if not a:"]),
        ("x = [a for a in b if a]", ["for a in b if a → for a in b"]),
        ("x = max(a + b, c)", ["max(a + b, c) → min(a + b, c)", "a + b → a - b"]),
        ("self.x = True", ["self.x = True → pass", "True → False"]),
        ("x -= a", ["x -= a → x += a", "x -= a → pass"]),
        ("await a(b)", ["await a(b) → pass"]),
        ("raise ValueError(f'{a + b} is {a < 3}')", ["raise ValueError(f'{a + b} is {a < 3}') → pass"]),
        ("assert a < 3", []),
        ("logger.warning(a < 3)", []),
        ("x: int = f'{a < 3}'", []),
        ("'''Says what a < 3 is.'''", []),
    ],
)
def test_which_changes_are_made_of_a_line(line: str, made: list[str]) -> None:
    found = changes(f"class Till:\n    async def pay(self, a=1):\n        {line}")
    assert [each.strip() for each in found] == made


def test_what_is_only_for_reading_is_left_alone() -> None:
    assert not changes("LIMIT = 3\n\nclass Till:\n    def __repr__(self): return self.a < 3\n")


TILL = '''
from functools import cached_property


class Till:
    """Adds up prices."""

    def __init__(self) -> None:
        self.prices = []

    def add(self, price):
        if price < 0:
            raise ValueError(price)
        self.prices.append(price)

    @cached_property
    def total(self):
        return sum(self.prices)

    def is_dear(self):
        return self.total > 10

    def forget(self):
        self.prices.clear()
'''
TESTS = """
import pytest
from shop.desk.till import Till


@pytest.fixture(scope="module")
def filled():
    till = Till()
    till.add(2)
    till.add(3)
    return till


def test_that_only_uses_it(filled):
    assert filled


def test_the_total(filled):
    assert filled.total == 5


def test_no_price_is_negative():
    with pytest.raises(ValueError):
        Till().add(-1)
"""
OTHERS = """
from shop.desk.till import Till


def test_few_are_dear():
    assert not Till().is_dear()
"""


NEAREST = "tests/desk/test_till.py"


def mutate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.mutate", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {
        "shop/desk/till.py": TILL,
        "tests/desk/test_till.py": TESTS,
        "tests/desk/test_others.py": OTHERS,
        "shop/__init__.py": "",
        "shop/desk/__init__.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_changes_are_noticed_by_the_nearest_tests_or_told(project: Path) -> None:
    ended = mutate(project, "shop.desk", "--json", "report.json", "--at-least", "0.7")
    assert ended.returncode == 1, ended.stderr
    verdicts = {
        f"{each['old']} → {each['new']}": (each["outcome"], each["tests"], each["by"].partition("::")[0])
        for each in json.loads((project / "report.json").read_text())["verdicts"]
    }
    assert verdicts == {
        "self.prices = [] → pass": ("killed", 4, NEAREST),
        "price < 0 → price <= 0": ("survived", 3, ""),
        "0 → 1": ("survived", 3, ""),
        "raise ValueError(price) → pass": ("killed", 1, NEAREST),
        "self.prices.append(price) → pass": ("killed", 2, NEAREST),
        "return sum(self.prices) → return None": ("killed", 2, NEAREST),
        "return self.total > 10 → return None": ("survived", 1, ""),
        "self.total > 10 → self.total >= 10": ("survived", 1, ""),
        "10 → 11": ("survived", 1, ""),
        "self.prices.clear() → pass": ("not reached", 0, ""),
    }
    assert "shop/desk/till.py:12 Till.add: price < 0  →  price <= 0  (3 tests reach it)" in ended.stdout
    assert "(no test reaches it)" in ended.stdout
    assert "4 of 10 changes were noticed" in ended.stdout
    assert (project / "shop/desk/till.py").read_text() == TILL


def test_a_sample_is_drawn_from_a_seed(project: Path) -> None:
    said = [mutate(project, "shop.desk.till", "--sample", "3", "--seed", seed).stdout for seed in ("1", "1", "2")]
    assert said[0] == said[1] != said[2]
    assert "of 3 changes" in said[0]


def test_tests_that_fail_unchanged_and_names_that_are_wrong_are_told(project: Path) -> None:
    (project / "tests/desk/test_others.py").write_text("def test_it():\n    assert False\n")
    ended = mutate(project, "shop.desk")
    assert ended.returncode == 1
    assert "fail without any change: tests/desk/test_others.py::test_it" in ended.stderr
    assert "No module named 'shop.counter'" in mutate(project, "shop.counter").stderr
    (project / "shop/attic.py").write_text("")
    assert "the nearest tests are to be in tests/attic" in mutate(project, "shop.attic").stderr
