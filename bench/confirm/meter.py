"""Keeps account of what all calls together may cost and have cost, in a file that outlasts the process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from flowevolve._util.errors import FlowevolveError, InputError
from flowevolve._util.tasks import Pulse
from flowevolve.core.model import Message, Usage
from flowevolve.journal.lock import Lock
from flowevolve.llm.client.accounting import Price

Unit = Literal["dollars", "tokens"]
TOKENS_A_MESSAGE = 64
"""The most tokens that the format of a chat adds to a message's own text."""
DIGITS: Mapping[Unit, str] = {"dollars": ".4f", "tokens": ",.0f"}


class CapReachedError(FlowevolveError):
    """The cap has no room for another call at its longest."""


@dataclass(frozen=True, slots=True)
class Paid:
    """What calls have cost. A call whose end is not known counts with the most that it can cost."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def __add__(self, other: Paid) -> Paid:
        return Paid(self.calls + other.calls, self.usage + other.usage)


def longest(messages: tuple[Message, ...], max_tokens: int) -> Usage:
    """The most that a call can cost: no tokenizer makes more tokens of a text than it has bytes."""
    size = sum(len(message.content.encode("utf-8", "surrogatepass")) + TOKENS_A_MESSAGE for message in messages)
    return Usage(size, max_tokens)


class Meter:
    """Reserves the most that a call can cost before it is sent, and settles it when it has ended.

    Both are written to a file as they happen. A call that was reserved but never settled, because the process was
    killed, stays charged in full. Until the meter is closed, no other process may write in the folder of the file.

    Raises:
        InputError: if another process is at work in that folder, or the file was not written by a meter.
    """

    def __init__(self, file: Path, caps: Mapping[Unit, float], price: Price) -> None:
        self._lock = Lock(file.parent)
        self._caps = caps
        self._price = price
        self._paid: dict[str, Paid] = {}
        self._open: dict[int, tuple[str, Usage]] = {}
        self._calls = 0
        self.changed = Pulse()
        """Fires when a call is settled."""
        try:
            if file.exists():
                self._read(file)
            self._file = file.open("a", encoding="utf-8")
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        self._file.close()
        self._lock.release()

    async def room(self, work: str, most: Usage) -> int:
        """Do the same as `reserve`, but if calls in progress leave no room, wait for them: most cost less than was set
        aside for them.

        Raises:
            CapReachedError: if the cap has no room for the call even when no other is in progress.
        """
        while True:
            try:
                return self.reserve(work, most)
            except CapReachedError:
                if not self._open:
                    raise
            await self.changed.wait()

    def reserve(self, work: str, most: Usage) -> int:
        """Set aside what a call for this work may cost; returns its number.

        Raises:
            CapReachedError: if the cap has no room for it.
        """
        for unit, cap in self._caps.items():
            if self.spent(unit) + self.amount(unit, most) > cap:
                raise CapReachedError(f"the cap of {cap:{DIGITS[unit]}} {unit} has no room for another call")
        self._calls += 1
        self._open[self._calls] = work, most
        self._write({"call": self._calls, "work": work, "most": [most.prompt_tokens, most.completion_tokens]})
        return self._calls

    def settle(self, call: int, usage: Usage) -> None:
        """Note what a call has cost."""
        self._settle(call, usage)
        self.changed.fire()
        self._write({"call": call, "paid": [usage.prompt_tokens, usage.completion_tokens]})

    def paid(self, work: str = "") -> Paid:
        """What calls for this work, and for all works below it, have cost, with what is set aside for open ones; by
        default of all works.
        """
        below = f"{work}/" if work else ""
        known = [paid for name, paid in self._paid.items() if f"{name}/".startswith(below)]
        unsettled = [Paid(1, most) for name, most in self._open.values() if f"{name}/".startswith(below)]
        return sum([*known, *unsettled], Paid())

    def spent(self, unit: Unit) -> float:
        """What has been spent, together with what is set aside."""
        return self.amount(unit, self.paid().usage)

    def left(self, unit: Unit) -> float:
        return self._caps[unit] - self.spent(unit)

    def amount(self, unit: Unit, usage: Usage) -> float:
        return self._price.cost(usage) if unit == "dollars" else usage.total_tokens

    def _settle(self, call: int, usage: Usage) -> None:
        work, _ = self._open.pop(call)
        self._paid[work] = self._paid.get(work, Paid()) + Paid(1, usage)

    def _write(self, line: Mapping[str, object]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def _read(self, file: Path) -> None:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                match json.loads(line):
                    case {"call": int(call), "work": str(work), "most": [int(prompt), int(completion)]}:
                        self._open[call] = work, Usage(prompt, completion)
                        self._calls = max(self._calls, call)
                    case {"call": int(call), "paid": [int(prompt), int(completion)]}:
                        self._settle(call, Usage(prompt, completion))
                    case _:
                        raise ValueError("is no call")
            except (ValueError, KeyError) as error:
                raise InputError(f"{file}: line {number}: {error}; what was paid can't be told from it") from None
        for call, (_, most) in list(self._open.items()):  # sent by a process that was killed
            self._settle(call, most)
