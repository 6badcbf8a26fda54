"""Parts of programs: what they are, when they are the same, and how they are put back."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from flowevolve.programs.features import syntax_error
from flowevolve.programs.parts import REST, Slot, frozen_parts, parts_of, restore, unchanged

OLD = """\
import math

LIMIT = 3


def parse(text):
    return int(text)  # one number


@staticmethod
def solve(x):
    return x + LIMIT


class Cache:
    size = 4
"""


def one(text: str) -> Mapping[str, str]:
    return {"program.py": text}


def back(old: str, new: str, *parts: str) -> str | None:
    restored = restore(one(old), one(new), parts)
    return None if restored is None else restored["program.py"]


def test_parts_are_functions_classes_and_the_rest() -> None:
    assert parts_of(one(OLD)) == ("parse", "solve", "Cache", REST)
    assert parts_of(one("def f(): pass\ndef g(): pass\ndef f(): return 1")) == ("f", "g")
    assert parts_of(one("x = 1")) == (REST,)
    assert parts_of(one("if x:\n    def f(): pass")) == (REST,)


def test_what_is_not_python_or_does_not_parse_is_one_part() -> None:
    assert parts_of(one("def f(:")) == (REST,)
    assert parts_of({"main.c": "int main() { return 0; }"}) == (REST,)
    assert parts_of(one("x = " + "-" * 5000 + "1")) == (REST,)
    assert unchanged({"main.c": "int x; "}, {"main.c": "int x;"}, [REST])
    assert restore({"main.c": "int x;"}, {"main.c": "int y;"}, [REST]) == {"main.c": "int x;"}


def test_parts_of_several_files_are_named_by_file() -> None:
    old = {"program.py": "import util\ndef solve(): return util.f()", "util.py": "def f(): return 1\ndef g(): return 2"}
    assert parts_of(old) == ("program.py:solve", f"program.py:{REST}", "util.py:f", "util.py:g")
    new = {**old, "util.py": "def f(): return 3\ndef g(): return 4"}
    assert unchanged(old, new, ["program.py:solve"])
    assert not unchanged(old, new, ["util.py:g"])
    restored = restore(old, new, ["util.py:g", "program.py:solve"])
    assert restored == {**old, "util.py": "def f(): return 3\ndef g(): return 2"}


def test_frozen_is_what_every_slot_keeps() -> None:
    slots = [Slot("misc", ("a", "b"), True), Slot("core_logic", ("b", "c"), False), Slot("io_parsing", ("d",), True)]
    assert frozen_parts(slots) == ("a", "d")


@pytest.mark.parametrize(
    ("new", "same"),
    [
        (OLD, {"parse", "solve", "Cache", REST}),
        (OLD.replace("  # one number", "").replace("x + LIMIT", "(x  +\n        LIMIT)"), {"parse", "solve", REST}),
        (OLD.replace("int(text)", "float(text)"), {"solve", "Cache", REST}),
        (OLD.replace("@staticmethod\n", ""), {"parse", "Cache", REST}),
        (OLD.replace("LIMIT = 3", "LIMIT = 4"), {"parse", "solve", "Cache"}),
        (OLD.replace("class Cache", "class Other"), {"parse", "solve", REST}),
        (OLD + "\n\ndef more():\n    return 1\n", {"parse", "solve", "Cache", REST}),
    ],
)
def test_only_layout_and_comments_may_differ(new: str, same: set[str]) -> None:
    for part in same:
        assert unchanged(one(OLD), one(new), [part]), part


@pytest.mark.parametrize(
    ("new", "part"),
    [
        (OLD.replace("int(text)", "float(text)"), "parse"),
        (OLD.replace("@staticmethod\n", ""), "solve"),
        (OLD.replace("LIMIT = 3", "LIMIT = 4"), REST),
        (OLD.replace("class Cache", "class Other"), "Cache"),
        (OLD + "\nsolve = print\n", "solve"),
        (OLD + "\nfrom fast import solve\n", "solve"),
        (OLD + "\ndef solve(x):\n    return 0\n", "solve"),
        (OLD + "\ndef LIMIT():\n    return 0\n", REST),
        (OLD + "\nmatch print:\n    case solve:\n        pass\n", "solve"),
        (OLD + "\nmatch [print]:\n    case [*solve]:\n        pass\n", "solve"),
        (OLD + "\nmatch {}:\n    case {**solve}:\n        pass\n", "solve"),
        (OLD + "\ntry:\n    x = 1 / 0\nexcept ArithmeticError as solve:\n    pass\n", "solve"),
        (OLD + "\ndef other():\n    global solve\n    solve = print\n\n\nother()\n", "solve"),
        (OLD.replace("size = 4", "global parse\n    from fast import parse"), "parse"),
        (OLD + "\nfrom fast import *\n", "solve"),
        (OLD + "\nif LIMIT:\n    from fast import *\n", "Cache"),
        (OLD + "\ndef other():\n    global LIMIT\n    LIMIT += 1\n", REST),
        ("def f(:", "solve"),
    ],
)
def test_what_changes_a_part(new: str, part: str) -> None:
    assert not unchanged(one(OLD), one(new), [part])


@pytest.mark.parametrize(
    "new",
    [
        f"from fast import *\n{OLD}",
        OLD + "\ndef other():\n    solve = print\n    return solve\n",
        OLD + "\ndef other():\n    global solve\n    return solve(1)\n",
        OLD + "\ndef other():\n    global SEEN\n    SEEN = True\n",
    ],
)
def test_what_binds_no_name_of_a_part_changes_none(new: str) -> None:
    assert unchanged(one(OLD), one(new), ["parse", "solve", "Cache"])


def test_what_the_old_program_binds_the_new_one_may_bind_in_the_same_way() -> None:
    old = OLD + "\nfrom fast import *\n"
    assert unchanged(one(old), one(old + "x = 1\n"), ["solve"])
    assert not unchanged(one(old), one(old + "from other import *\n"), ["solve"])
    assert not unchanged(one(old), one(old + "solve = print\n"), ["solve"])
    counting = OLD + "\ndef count():\n    global LIMIT\n    LIMIT += 1\n"
    assert unchanged(one(counting), one(counting.replace("+= 1", "+= 2")), [REST])


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("import heapq", True),
        ("from bisect import bisect_left as find", True),
        ("from numpy import *", False),
        ("import cmath as math", False),
        ("from limits import LIMIT", False),
        ("import heapq; heapq.x = 1", False),
    ],
)
def test_an_import_more_is_no_change_of_the_rest_unless_it_binds_a_name_there_is(line: str, same: bool) -> None:
    assert unchanged(one(OLD), one(f"{line}\n{OLD}"), [REST]) is same


def test_a_part_is_put_back_where_it_was_with_its_comments() -> None:
    new = OLD.replace("int(text)  # one number", "float(text)").replace("x + LIMIT", "x * LIMIT")
    assert back(OLD, new, "parse") == OLD.replace("x + LIMIT", "x * LIMIT")
    assert back(OLD, new, "parse", "solve", "Cache", REST) == OLD
    assert back(OLD, new) == new


def test_a_part_that_is_gone_comes_behind_the_one_before_it_or_first() -> None:
    gone = OLD.replace("@staticmethod\ndef solve(x):\n    return x + LIMIT\n\n\n", "")
    restored = back(OLD, gone, "solve")
    assert restored is not None
    assert parts_of(one(restored)) == ("parse", "solve", "Cache", REST)
    first = back(OLD, "def other():\n    return 1\n", "parse")
    assert first is not None
    assert parts_of(one(first)) == ("parse", "other")
    assert back(OLD, "print(1)\n", "Cache") is not None


def test_where_the_rest_is_put_back_new_functions_and_imports_stay() -> None:
    new = f"import heapq\n{OLD}".replace("LIMIT = 3", "LIMIT = 4").replace("x + LIMIT", "helper(x)")
    new += "\n\ndef helper(x):\n    return heapq.nlargest(1, x)\n"
    restored = back(OLD, new, REST, "parse")
    assert restored is not None
    assert "LIMIT = 3" in restored
    assert "LIMIT = 4" not in restored
    assert unchanged(one(new), one(restored), ["solve", "helper", "parse", "Cache"])
    assert restored.count("import heapq") == 1
    assert restored.index("import heapq") < restored.index("def solve")


def test_a_function_that_is_not_kept_and_was_dropped_does_not_come_back_with_the_rest() -> None:
    new = "LIMIT = 9\n\ndef solve(x):\n    return x\n"
    restored = back(OLD, new, REST)
    assert restored is not None
    assert parts_of(one(restored)) == ("solve", REST)


def test_what_can_not_be_put_back_is_said() -> None:
    assert back(OLD, OLD + "\nsolve = print\n", "solve") is None
    assert back(OLD, OLD + "\ndef LIMIT():\n    return 0\n", REST) is None


def test_marks_are_kept_to() -> None:
    old = "a = 1\n# EVOLVE-BLOCK-START\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n# EVOLVE-BLOCK-END\n"
    new = old.replace("return 1", "return 3").replace("return 2", "return 4")
    assert back(old, new, "f") == old.replace("return 2", "return 4")


# Whatever programs there are

NAMES = st.sampled_from(["alpha", "beta", "gamma", "delta"])
BODIES = st.sampled_from(["return 1", "return 2", "x = 3; return x", "return [n for n in range(4)]"])
LINES = st.sampled_from(["import os", "import sys", "N = 1", "M = 2", "print(4)", "# a word", ""])
DEFINITIONS = st.builds(
    lambda name, body, mark: f"{mark}def {name}():\n    {body}\n", NAMES, BODIES, st.sampled_from(["", "@cached\n"])
)
PROGRAMS = st.lists(st.one_of(DEFINITIONS, LINES), max_size=9).map("\n".join)


def tree_of(text: str, part: str) -> list[str]:
    """The part's statements, found in another way than the module does."""
    body = ast.parse(text).body
    named = [(getattr(node, "name", REST), ast.unparse(node)) for node in body]
    return [said for name, said in named if name == part]


def drawn(text: str, data: st.DataObject) -> list[str]:
    """Some of its parts."""
    known = parts_of(one(text))
    return data.draw(st.lists(st.sampled_from(known), unique=True)) if known else []


@given(old=PROGRAMS, new=PROGRAMS, data=st.data())
def test_put_back_parts_are_as_they_were_and_others_as_they_became(old: str, new: str, data: st.DataObject) -> None:
    parts = drawn(old, data)
    restored = back(old, new, *parts)
    if restored is None:
        return
    assert syntax_error(restored) is None
    for part in parts_of(one(old)):
        if part in parts and part != REST:
            assert tree_of(restored, part) == tree_of(old, part)
    free = [part for part in parts_of(one(new)) if part not in (*parts, REST)]
    for part in free:
        assert tree_of(restored, part) == tree_of(new, part)
    if REST in parts:
        taken_along = ("import", "N =", "M =")
        added = [line for line in tree_of(new, REST) if line.startswith(taken_along) and line not in tree_of(old, REST)]
        assert [line for line in tree_of(restored, REST) if line not in added] == tree_of(old, REST)
    else:
        assert tree_of(restored, REST) == tree_of(new, REST)
    assert back(old, restored, *parts) == restored


@given(old=PROGRAMS, new=PROGRAMS, data=st.data())
def test_of_functions_alone_everything_can_be_put_back(old: str, new: str, data: st.DataObject) -> None:
    """Nothing in these programs binds a function's name to something else."""
    parts = drawn(old, data)
    assert back(old, new, *parts) is not None


@given(PROGRAMS)
def test_nothing_is_put_back_where_nothing_has_changed(text: str) -> None:
    assert unchanged(one(text), one(text), parts_of(one(text)))
    assert back(text, text, *parts_of(one(text))) == text


CHILD = """\
import math
import heapq

LIMIT = 3
TABLE = [1, 2]


def parse(text):
    return int(text)


def fast(function):
    return function


SEEN = {}


@fast
def solve(x):
    SEEN[x] = TABLE
    return x + LIMIT


class Cache:
    size = 4
"""


def test_what_a_child_needs_is_taken_along_where_the_rest_is_kept() -> None:
    assert unchanged(one(OLD), one(CHILD), [REST, "parse"])
    restored = back(OLD, CHILD.replace("LIMIT = 3", "LIMIT = 4"), REST, "parse") or ""
    assert "LIMIT = 3" in restored
    names: dict[str, object] = {}
    exec(restored, names)
    solve = names["solve"]
    assert callable(solve)
    assert solve(1) == 4
    assert unchanged(one(OLD), one(restored), [REST, "parse"])


def test_a_docstring_is_no_change() -> None:
    new = OLD.replace("def parse(text):", 'def parse(text):\n    """Read it."""').replace(
        "import math", '"""Sums."""\nimport math'
    )
    assert unchanged(one(OLD), one(new), ["parse", "solve", "Cache", REST])


ONE_CLASS = """\
import math


class Solver:
    size = 4

    def __init__(self):
        self.seen = []

    def solve(self, x):
        return x + 1
"""


def test_of_a_lone_class_the_methods_are_parts() -> None:
    assert parts_of(one(ONE_CLASS)) == ("Solver.__init__", "Solver.solve", REST)
    child = ONE_CLASS.replace("self.seen = []", "self.seen = {}").replace("x + 1", "self.twice(x)")
    child = (
        child.replace("size = 4", "size = 4\n    most = 9")
        + "\n    def twice(self, x):\n        return 2 * x + self.most\n"
    )
    assert unchanged(one(ONE_CLASS), one(child), [REST])
    restored = back(ONE_CLASS, child, REST, "Solver.__init__") or ""
    assert syntax_error(restored) is None
    assert "self.seen = []" in restored
    assert "most = 9" in restored
    assert "def twice" in restored
    changed = back(ONE_CLASS, child.replace("size = 4", "size = 5"), REST) or ""
    assert syntax_error(changed) is None
    assert "size = 4" in changed
    assert "most = 9" in changed
    assert "def twice" in changed
    assert unchanged(one(ONE_CLASS), one(changed), [REST])
