"""Fault injection: a share of the calls to a simulated server goes wrong, at random and yet the same in every run.

This module decides which calls go wrong and produces the errors for callers in the same process.
`flowevolve.sim.http_faults` produces the same faults for callers over HTTP.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

import anyio
import anyio.lowlevel

from flowevolve.core.model import (
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
    "redirect",  # to a page that redirects to itself for ever
    "reset",  # the connection is reset instead of an answer
    "cut",  # the connection is reset in the middle of the answer
    "hang",  # no answer, ever
    "stall",  # half an answer, and then nothing
    "trickle",  # one byte a second
    "malformed",  # a body that is not valid JSON
    "empty",  # an answer without choices
    "html",  # an HTML page instead of JSON
    "no_usage",  # a good answer without its token counts
]
FAULTS: tuple[Fault, ...] = get_args(Fault)
RETRY_AFTER_SECONDS = 2.0
"""The wait that the fault ``retry_after`` asks for."""

_MESSAGE = "a fault on demand"


class Faults:
    """Draws which attempts go wrong and how: a share ``rate`` of all attempts, with all ``kinds`` equally likely.

    A draw depends on the seed, the request and how often that request went wrong in a row, and on nothing else.
    """

    def __init__(self, rate: float, kinds: Sequence[Fault] = FAULTS, seed: int = 0) -> None:
        self.played: Counter[Fault] = Counter()
        """How often each fault was drawn."""
        self._rate = rate
        self._kinds = tuple(kinds)
        self._seed = seed
        self._in_a_row: dict[int, int] = {}

    def draw(self, request: int) -> Fault | None:
        """Draw the fault of the next attempt at the request with this number; None if the attempt goes well."""
        before = self._in_a_row.pop(request, 0)
        rng = random.Random(f"{self._seed}/{request}/{before}")
        if rng.random() >= self._rate:
            return None
        self._in_a_row[request] = before + 1
        fault = rng.choice(self._kinds)
        self.played[fault] += 1
        return fault


def status_error(fault: Fault) -> LLMError | None:
    """The error of a fault that consists of an HTTP status alone; None for all other faults."""
    match fault:
        case "overloaded":
            return OverloadedError(_MESSAGE, status=429)
        case "retry_after":
            return OverloadedError(_MESSAGE, status=429, retry_after=RETRY_AFTER_SECONDS)
        case "unavailable":
            return OverloadedError(_MESSAGE, status=503)
        case "error":
            return ServerError(_MESSAGE, status=500)
        case _:
            return None


async def apply_fault(
    fault: Fault, answer: Callable[[], Awaitable[ChatReply]], request: ChatRequest, timeout: float
) -> ChatReply:
    """Apply a fault to a call. ``answer`` returns the good reply, after the time that this takes.

    Raises:
        LLMError: of the class that a transport would raise, for every fault but ``no_usage``.
    """
    await anyio.lowlevel.checkpoint()
    if (refused := status_error(fault)) is not None:
        raise refused
    if fault in ("reset", "redirect"):
        raise UnreachableError(f"{fault}: {_MESSAGE}")
    if fault in ("hang", "stall", "trickle"):
        await _wait_without_answer(fault, answer, request, timeout)
    reply = await answer()
    if fault == "no_usage":
        return replace(reply, usage=Usage())
    if fault == "cut":
        raise UnreachableError(f"{fault}: {_MESSAGE}")
    raise ServerError(f"{fault}: {_MESSAGE}")


async def _wait_without_answer(
    fault: Fault, answer: Callable[[], Awaitable[ChatReply]], request: ChatRequest, timeout: float
) -> None:
    idle = request.idle_seconds if fault == "stall" and request.stream else None
    with anyio.move_on_after(timeout):
        if idle is None:
            await anyio.sleep_forever()
        else:
            await answer()
            await anyio.sleep(idle)
    raise UnreachableError(f"{fault}: {_MESSAGE}")
