"""The undefined names of a program, which the world `code` finds before it hands the program in."""

from __future__ import annotations

import ast

import pytest

from flowevolve.sim.worlds.code.names import unbound


def missing(source: str) -> set[str]:
    return set(unbound(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "import math\nfrom os import path as p\nx = math.pi\nprint(p, x, __name__, __file__)",
        "def f():\n    return g() + LATER\ndef g():\n    return 1\nLATER = 2",
        "def f(a, *rest, b=1, **more):\n    return a, rest, b, more",
        "x = [i + j for i in range(3) for j in range(i) if j]\ny = {k: v for k, v in []}\nz = sum(i for i in x)",
        "for i, (a, b) in []:\n    c = i + a + b\n    print(c)",
        "def f():\n    total = 0\n    def g():\n        return total + late\n    late = 1\n    return g",
        "key = sorted([], key=lambda each: -each)",
        "if (n := 3) > 2:\n    print(n)",
        "try:\n    pass\nexcept ValueError as error:\n    print(error)",
        "with open('x') as file:\n    print(file)",
        "class A:\n    def f(self):\n        return self\nA()",
        "def f(flag):\n    if flag:\n        x = 1\n    return x",
        "from math import *\nprint(pi)",
    ],
)
def test_what_has_a_value_is_not_missed(source: str) -> None:
    assert missing(source) == set()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("print(x)\nx = 1", {"x"}),
        ("x += 1", {"x"}),
        ("x = x + 1", {"x"}),
        ("def f():\n    total += 1\n    return total", {"total"}),
        ("def f(a=b):\n    return a", {"b"}),
        ("x = [i for i in range(3)]\nprint(i)", {"i"}),
        ("x = [i + j for i in range(j) for j in range(3)]", {"j"}),
        ("def f():\n    y = 1\n\ndef g():\n    return y", {"y"}),
        ("for i in items:\n    pass", {"items"}),
        ("def f():\n    return sqrt(2)", {"sqrt"}),
        ("x: int\nprint(x)", {"x"}),
    ],
)
def test_what_is_read_before_it_has_a_value_is_named(source: str, names: set[str]) -> None:
    assert missing(source) == names
