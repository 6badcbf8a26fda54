"""Faults on demand: a share of the calls to a simulated server goes wrong, at random and yet the same in every run.

Here is which call goes wrong, and what a caller inside the process meets; `flowevolve.sim.wire_faults` does the same to
callers over HTTP.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

import anyio
import anyio.lowlevel

from flowevolve.llm.types import (
    ChatReply,
    ChatRequest,
    LLMError,
    OverloadedError,
    ServerError,
    UnreachableError,
    Usage,
)

Fault = Literal[
    "overloaded",  # 429
    "retry_after",  # 429 that says when to come back
    "unavailable",  # 503
    "error",  # 500
    "redirect",  # to itself, for ever
    "reset",  # the connection is reset instead of an answer
    "cut",  # the connection is reset in the middle of the answer
    "hang",  # no answer, ever
    "stall",  # half an answer, and then nothing
    "trickle",  # one byte a second
    "malformed",  # JSON that is none
    "empty",  # an answer without choices
    "html",  # a page where the answer should be
    "no_usage",  # a good answer that does not say what it cost
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
RETRY_AFTER_SECONDS = 2.0
"""What ``retry_after`` asks for."""

_SAID = "a fault on demand"


class Faults:
    """Says which attempts go wrong and how: a share ``rate`` of all, each of ``kinds`` as likely.

    It depends on the seed, the request and how often that request went wrong in a row, and on nothing else that runs.
    """

    def __init__(self, rate: float, kinds: Sequence[Fault] = FAULTS, seed: int = 0) -> None:
        self.played: Counter[Fault] = Counter()
        """How often each was drawn."""
        self._rate = rate
        self._kinds = tuple(kinds)
        self._seed = seed
        self._in_a_row: dict[int, int] = {}

    def draw(self, request: int) -> Fault | None:
        """What happens to the next attempt at a request, known by this number; None if it goes well."""
        before = self._in_a_row.pop(request, 0)
        rng = random.Random(f"{self._seed}/{request}/{before}")
        if rng.random() >= self._rate:
            return None
        self._in_a_row[request] = before + 1
        fault = rng.choice(self._kinds)
        self.played[fault] += 1
        return fault


def refusal(fault: Fault) -> LLMError | None:
    """The error of a fault that is a status and nothing else; None for the others."""
    match fault:
        case "overloaded":
            return OverloadedError(_SAID, status=429)
        case "retry_after":
            return OverloadedError(_SAID, status=429, retry_after=RETRY_AFTER_SECONDS)
        case "unavailable":
            return OverloadedError(_SAID, status=503)
        case "error":
            return ServerError(_SAID, status=500)
        case _:
            return None


async def suffer(
    fault: Fault, answer: Callable[[], Awaitable[ChatReply]], request: ChatRequest, timeout: float
) -> ChatReply:
    """What a caller gets of a call that this happens to. ``answer`` takes the time of a good one.

    Raises:
        LLMError: of the class that a transport would raise, unless the fault leaves a reply.
    """
    await anyio.lowlevel.checkpoint()
    if (refused := refusal(fault)) is not None:
        raise refused
    if fault in ("reset", "redirect"):
        raise UnreachableError(f"{fault}: {_SAID}")
    if fault in ("hang", "stall", "trickle"):
        await _wait_in_vain(fault, answer, request, timeout)
    reply = await answer()
    if fault == "no_usage":
        return replace(reply, usage=Usage())
    if fault == "cut":
        raise UnreachableError(f"{fault}: {_SAID}")
    raise ServerError(f"{fault}: {_SAID}")


async def _wait_in_vain(
    fault: Fault, answer: Callable[[], Awaitable[ChatReply]], request: ChatRequest, timeout: float
) -> None:
    idle = request.idle_seconds if fault == "stall" and request.stream else None
    with anyio.move_on_after(timeout):
        if idle is None:
            await anyio.sleep_forever()
        else:
            await answer()
            await anyio.sleep(idle)
    raise UnreachableError(f"{fault}: {_SAID}")
