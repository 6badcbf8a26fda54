"""What is paid never passes the cap, and is known after the process was killed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Protocol, cast

import pytest

from bench.confirm.meter import CapReachedError, Meter, Paid, Unit, longest
from flowevolve._util.errors import InputError
from flowevolve.core.model import Message, Usage
from flowevolve.llm.client.accounting import Price

Caps = Mapping[Unit, float]
PRICE = Price(1.0, 1.0, 10.0)


class Open(Protocol):
    def __call__(self, **caps: float) -> Meter: ...


@pytest.fixture
def meter(tmp_path: Path) -> Iterator[Open]:
    """Opens the meter of one folder, as each start of the command does once the one before has ended."""
    with ExitStack() as stack:

        def opened(**caps: float) -> Meter:
            stack.close()
            return stack.enter_context(closing(Meter(tmp_path / "paid.jsonl", cast("Caps", caps), PRICE)))

        yield opened


def test_a_folder_is_one_process_s_until_its_meter_is_closed(meter: Open, tmp_path: Path) -> None:
    meter(tokens=1000)
    with pytest.raises(InputError, match="is at work in this run directory"):
        Meter(tmp_path / "paid.jsonl", {}, PRICE)


def test_a_call_is_reserved_at_its_longest(meter: Open) -> None:
    counting = meter(tokens=1000)
    first = counting.reserve("a", Usage(100, 500))
    with pytest.raises(CapReachedError, match=r"the cap of 1,000 tokens has no room"):
        counting.reserve("a", Usage(100, 500))
    counting.settle(first, Usage(90, 10))
    counting.reserve("a", Usage(100, 500))
    assert counting.left("tokens") == 300


def test_every_cap_holds(meter: Open) -> None:
    counting = meter(tokens=1000, dollars=0.001)
    with pytest.raises(CapReachedError, match="dollars"):
        counting.reserve("a", Usage(0, 101))
    counting.reserve("a", Usage(0, 100))


def test_a_process_that_goes_on_knows_what_was_paid(meter: Open) -> None:
    counting = meter(tokens=1000)
    counting.settle(counting.reserve("a/1/gepa", Usage(100, 500)), Usage(90, 10))
    counting.reserve("a/10/gepa", Usage(100, 100))  # and the process is killed
    again = meter(tokens=1000)
    assert again.paid() == Paid(2, Usage(190, 110))
    assert again.paid("a/1") == Paid(1, Usage(90, 10))
    assert again.left("tokens") == 700
    assert again.reserve("b", Usage(1, 1)) == 3


def test_a_file_that_cannot_be_read_is_an_error(meter: Open, tmp_path: Path) -> None:
    (tmp_path / "paid.jsonl").write_text('{"call": 1, "paid": [3, 4]}\n')
    with pytest.raises(InputError, match=r"paid\.jsonl: line 1: .*; what was paid can't be told from it"):
        meter()


def test_the_longest_is_by_bytes() -> None:
    assert longest((Message("user", "äöü"),), 7) == Usage(6 + 64, 7)
