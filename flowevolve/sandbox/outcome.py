"""The outcome of a program's run, and the safe reading of its result."""

from __future__ import annotations

import json
import math
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Literal

from flowevolve._util.json_types import JSON
from flowevolve.sandbox.inside import candidate
from flowevolve.sandbox.inside.wire import Report, Request, Stopped

Status = Literal["ok", "error", "timeout", "memory", "killed", "denied"]

MEGABYTE = 2**20
NOT_PERMITTED = (
    "the sandbox does not permit what the program tried: there is no network, files are written below /tmp alone, and "
    "of the system calls only those of ordinary computation work"
)
DEEPEST = 64
"""How deeply a result may be nested, so that recursive code can handle it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program did, measured from outside its process. ``result`` is plain data chosen by the program."""

    status: Status
    """``denied``: it ended because it tried something that is not permitted; ``killed``: a signal ended it."""
    seconds: float
    cpu_seconds: float
    """The CPU time of all its processes."""
    peak_mb: float
    stdout: str
    stderr: str
    result: JSON = None
    samples: tuple[tuple[float, float], ...] = ()
    """Pairs of the seconds since its start and the megabytes of memory in use then."""

    def to_json(self) -> dict[str, JSON]:
        """All fields but the samples."""
        fields = asdict(self)
        del fields["samples"]
        return fields


def read_outcome(request: Request, report: Report, stdout: bytes, stderr: bytes, result: bytes) -> Outcome:
    """Turn a report into an outcome. A call without a result is an error; the output of a command may be its result."""
    status, why = _status(report)
    value: JSON = None
    try:
        if status == "ok" and (result or request.call is not None):
            value = read_result(result, request.result_limit)
    except ValueError as error:
        status, why = "error", str(error)
    if status == "ok" and request.command is not None:
        with suppress(ValueError):
            value = read_result(stdout, request.result_limit)
    errors = stderr.decode("utf-8", "replace")
    if status == "error" and not why and not errors.strip():
        why = f"it ended with exit code {report.code}"
    gap = "" if not errors or errors.endswith("\n") else "\n"
    return Outcome(
        status,
        round(report.seconds, 6),
        round(report.cpu_seconds, 6),
        round(report.peak / MEGABYTE, 3),
        stdout.decode("utf-8", "replace"),
        f"{errors}{gap}{why}" if why else errors,
        value,
        tuple((seconds, memory / MEGABYTE) for seconds, memory in report.samples),
    )


def no_report(request: Request, stopped: Stopped | None) -> Outcome:
    """The outcome of a program that was killed together with its sandbox, so that there is no report."""
    seconds = 0.0 if stopped is None else request.timeout
    return read_outcome(request, Report(-signal.SIGKILL, stopped, seconds, 0.0, 0, []), b"", b"", b"")


def read_result(text: bytes, limit: int) -> JSON:
    """Read the result that a program wrote.

    Raises:
        ValueError: if it is not valid; the message says why.
    """
    if not text.strip():
        raise ValueError("the program ended without a result")
    if len(text) > limit:
        raise ValueError(f"the result is longer than {limit} bytes; sandbox.result_kb allows more")
    return read_json(text, "the result")


def read_json(text: bytes, what: str) -> JSON:
    """Read one strict JSON document in UTF-8; ``what`` names it in messages.

    Raises:
        ValueError: if it is not valid; the message says why.
    """
    try:
        value: JSON = json.loads(text.decode(), parse_constant=_no_such_number)
    except RecursionError:
        raise ValueError(f"{what} is nested more than {DEEPEST} deep") from None
    except ValueError as error:
        raise ValueError(f"{what} is not JSON: {error}") from None
    _check(value, what)
    return value


def _no_such_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _check(value: JSON, what: str) -> None:
    """Check a value level by level, in time linear in its size and without recursion."""
    level = [value]
    for _ in range(DEEPEST):
        inner: list[JSON] = []
        for each in level:
            match each:
                case dict():
                    inner += [*each, *each.values()]
                case list():
                    inner += each
                case str():
                    _check_text(each, what)
                case int() | float() if not _is_finite(each):
                    raise ValueError(f"{what} has a number beyond what a float holds")
        if not inner:
            return
        level = inner
    raise ValueError(f"{what} is nested more than {DEEPEST} deep")


def _check_text(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:  # it could not be written anywhere as UTF-8
        raise ValueError(f"{what} has half a character: a surrogate without its other half") from None


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _status(report: Report) -> tuple[Status, str]:
    """The status, and an explanation where the program itself did not print one."""
    match report.stopped, report.code:
        case "timeout", _:
            return "timeout", "time-out"
        case "memory", _:
            return "memory", "more memory than allowed"
        case str(what), _:
            return "killed", f"too many {what}"
        case _, 0:
            return "ok", ""
        case _, candidate.OUT_OF_MEMORY:
            return "memory", ""
        case _, code if code in (candidate.DENIED, -signal.SIGSYS):
            return "denied", NOT_PERMITTED
        case _, code if code > 0:
            return "error", ""
    try:
        name = signal.Signals(-report.code).name
    except ValueError:
        name = f"signal {-report.code}"
    return "killed", f"killed by {name}"
