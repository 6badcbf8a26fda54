"""What a program's function is called with, read from its text."""

from __future__ import annotations

import pytest

from flowevolve._util.errors import InputError
from flowevolve.programs.signature import check_call, check_entry, signatures

PACK = "def fits(a): pass\n\ndef pack(items, capacity=1.0, *, order): pass\n"


def test_the_functions_and_what_they_need() -> None:
    found = signatures(PACK)
    assert list(found) == ["fits", "pack"]
    assert (found["pack"].needed, found["pack"].known) == (("items", "order"), ("items", "capacity", "order"))


@pytest.mark.parametrize(
    ("source", "given"),
    [
        (PACK, ["items", "order"]),
        (PACK, ["items", "order", "capacity"]),
        ("def pack(**options): pass", ["items"]),
        ("@cached\ndef pack(): pass", ["items"]),
        ("from elsewhere import pack", ["items"]),
        ("def pack(:", ["items"]),
    ],
)
def test_calls_that_may_work_pass(source: str, given: list[str]) -> None:
    check_call(source, "pack", given, "task.cases")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], r"task.cases: the function pack needs items, order; .* cases = \[\{ items = …, order = … \}\]"),
        (["items", "order", "size"], "has no parameter size; it takes items, capacity, order"),
    ],
)
def test_arguments_that_do_not_fit(given: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_call(PACK, "pack", given, "task.cases")


def test_a_misspelt_function_is_told_the_right_name() -> None:
    with pytest.raises(InputError, match=r"^task.entry: the program has no function 'pak'; did you mean 'pack'\?$"):
        check_entry(PACK, "pak", "task.entry")


@pytest.mark.parametrize("source", [PACK, "from elsewhere import pak\n" + PACK, "pak = len\n" + PACK, "def pack(:", ""])
def test_a_function_that_may_be_there_or_be_written_later_passes(source: str) -> None:
    check_entry(source, "pack" if source == PACK else "pak", "task.entry")
    check_entry(source, "solve", "task.entry")
