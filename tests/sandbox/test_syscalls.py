"""Which system calls programs may make: what docs/reference/sandbox.md says, on both machines, and as the kernel answers."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.sandbox.inside.syscall_filter import MACHINES, filter_for
from flowevolve.sandbox.inside.syscall_numbers import ALLOWED, CONDITIONAL, NEWEST
from tests.sandbox.conftest import Cell
from tests.support import bpf, refused_calls
from tests.support.refused_calls import ARCHITECTURES, ATTEMPTS, REFUSED, Attempt

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sandbox.md"
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
NAMES = [name for row in REFUSED.values() for name in row]


@pytest.fixture(scope="module")
def errors(cell: Cell) -> dict[str, JSON]:
    """The error of each call, tried in one program on this machine."""
    outcome = cell.run(refused_calls.program())
    assert isinstance(outcome.result, dict), outcome
    return outcome.result


@pytest.mark.parametrize("name", NAMES)
def test_what_is_refused_always(name: str, errors: dict[str, JSON]) -> None:
    (numbers,) = (row[name] for row in REFUSED.values() if name in row)
    for machine, number in numbers.items():
        given = filter_for(machine)
        assert bpf.answer(given, ARCHITECTURES[machine], number) == bpf.refused(errno.EPERM), machine
    if os.uname().machine in numbers:
        assert errors[name] == errno.EPERM


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.words.replace(" ", "-"))
def test_what_is_refused_for_its_arguments(attempt: Attempt, errors: dict[str, JSON]) -> None:
    for machine, architecture in ARCHITECTURES.items():
        answer = bpf.answer(filter_for(machine), architecture, attempt.number(machine), attempt.arguments)
        assert answer == bpf.refused(attempt.error), machine
    assert errors[attempt.words] == attempt.error


@pytest.mark.parametrize(("call", "arguments"), refused_calls.ALLOWED)
@pytest.mark.parametrize("machine", MACHINES)
def test_what_honest_programs_need(machine: str, call: str, arguments: tuple[int, ...]) -> None:
    number = CONDITIONAL[call][MACHINES.index(machine)]
    assert bpf.answer(filter_for(machine), ARCHITECTURES[machine], number, arguments) == bpf.ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_not_listed_is_refused(machine: str) -> None:
    column, given, architecture = MACHINES.index(machine), filter_for(machine), ARCHITECTURES[machine]
    listed = {numbers[column] for group in ALLOWED.values() for numbers in group.values()}
    decided = {numbers[column] for numbers in CONDITIONAL.values()}
    for number in set(range(NEWEST + 200)) - decided:
        other = bpf.refused(errno.EPERM if number <= NEWEST else errno.ENOSYS)
        assert bpf.answer(given, architecture, number) == (bpf.ALLOWED if number in listed else other), number


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("other", [0x40000003, 0x40000028, 0, 0xC00000B7, 0xC000003E])
def test_calls_of_another_architecture_kill(machine: str, other: int) -> None:
    answer = bpf.answer(filter_for(machine), other, 39)
    assert (answer == bpf.KILLED) == (other != ARCHITECTURES[machine])


@pytest.mark.parametrize("number", [0x40000000, 0x40000027, 0x7FFFFFFF, 2**32 - 1])
def test_calls_of_x32_are_refused(number: int) -> None:
    assert bpf.answer(filter_for("x86_64"), ARCHITECTURES["x86_64"], number) == bpf.refused(errno.EPERM)


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernel(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("the kernel's headers are not installed")
    column = MACHINES.index(machine)
    text = HEADERS[machine].read_text()
    known = {
        name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)$", text, re.MULTILINE)
    }
    ours = {name: numbers[column] for group in ALLOWED.values() for name, numbers in group.items()}
    ours |= {name: numbers[column] for name, numbers in CONDITIONAL.items()}
    ours |= {name: numbers.get(machine) for row in REFUSED.values() for name, numbers in row.items()}
    for name, number in ours.items():
        there = known.get(name, known.get(name.removeprefix("new")))  # fstatat has two names
        assert there == number or (there is None and number is not None and number > max(known.values())), name


def test_a_call_of_32_bits_is_told_as_denied(cell: Cell) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("its machine code is for x86_64")
    outcome = cell.run(
        "import ctypes, mmap\n"
        "code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)\n"
        r"code.write(b'\xb8\x14\x00\x00\x00\xcd\x80\xc3')" + "\n"  # getpid by int 0x80
        "at = ctypes.addressof(ctypes.c_char.from_buffer(code))\n"
        "result = ctypes.CFUNCTYPE(ctypes.c_int)(at)()"
    )
    assert outcome.status == "denied"
    assert "does not permit" in outcome.stderr


def test_a_program_that_is_refused_a_call_reads_why(cell: Cell) -> None:
    refused = cell.run("import os\nos.memfd_create('x')")
    unknown = cell.run("import ctypes, os\nraise OSError(38, os.strerror(38))")
    for outcome in (refused, unknown):
        assert outcome.status == "denied"
        assert "the sandbox does not permit" in outcome.stderr
    assert "line 2" in refused.stderr


def test_the_page_answers_for_each_call() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert set(NAMES) <= {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    for row, calls in REFUSED.items():
        (line,) = (line for line in rows if line.startswith(f"| {row} |"))
        assert set(calls) <= set(re.findall(r"`(\w+)`", line)), row
    assert {attempt.row for attempt in ATTEMPTS} <= {line.split("|")[1].strip() for line in rows}
