"""The whole of it: ask a server, fit a profile, and compare both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flowevolve.core.model import Transport, Usage
from flowevolve.sim.calibration.fitting import fit
from flowevolve.sim.calibration.measuring import Measured, measure
from flowevolve.sim.calibration.mix import Check, compare
from flowevolve.sim.calibration.rounds import AskedServer
from flowevolve.sim.profiles import Profile

CHECKED_AT = 16
"""Requests at a time in the comparison, or fewer where the server refused as many."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A server's profile, how well it holds, and what finding it has cost."""

    profile: Profile
    measured: Measured
    assumed: Sequence[str]
    """What the profile takes for granted because it was not seen, each in a sentence."""
    check: Check | None
    """None if the server refused some of the requests of the comparison."""
    requests: int
    usage: Usage


async def calibrate(
    transport: Transport,
    model: str,
    *,
    most: int = 64,
    seconds: float = 120.0,
    cache_tokens: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Calibration:
    """Measure a server for about so many seconds, with at most so many requests at a time.

    ``cache_tokens`` is the size of its prefix cache, where that is known; ``tell`` hears what is done.

    Raises:
        BackendRefusedError: if the server refuses the model or the key.
        BackendUnreachableError: if it does not answer.
        OverloadedError: if it refuses a single request as too much.
    """
    server = AskedServer(transport, model)
    measured = await measure(server, most=most, seconds=seconds * 0.8, tell=tell)
    fitted = fit(measured, cache_tokens)
    tell("comparing the profile with the server")
    at_once = min(CHECKED_AT, measured.requests()[-1])
    check = await compare(server, fitted.profile, at_once)
    return Calibration(fitted.profile, measured, fitted.assumed, check, server.requests, server.usage)
