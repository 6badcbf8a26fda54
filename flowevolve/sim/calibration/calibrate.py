"""The whole calibration: measure a server, fit a profile, and compare both."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flowevolve.core.model import ServerTransport, Transport, Usage
from flowevolve.llm.scheduling.metrics_probe import MetricsProbe
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.calibration.fitting import fit
from flowevolve.sim.calibration.measuring import Measured, measure
from flowevolve.sim.calibration.mix import Check, compare
from flowevolve.sim.calibration.rounds import AskedServer, Texts
from flowevolve.sim.profiles import Profile

CHECKED_AT = 16
"""How many requests are sent at a time in the comparison; fewer if the server was not measured with this many."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A server's profile, how well it predicts the server, and what the calibration cost."""

    profile: Profile
    measured: Measured
    assumed: Sequence[str]
    """What the profile assumes because it was not observed, each in a sentence."""
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
    tell: Callable[[str], None] = lambda _: None,
    seed: int | None = None,
) -> Calibration:
    """Measure a server for about ``seconds``, with at most ``most`` requests at a time, and fit a profile to it.

    ``tell`` is called with words on what is being done. The prompts are drawn from ``seed``. Without one they are new
    each time, because a server that was measured before may still have the earlier prompts in its cache.

    Raises:
        BackendRefusedError: if the server refuses the model or the key.
        BackendUnreachableError: if it does not answer.
        OverloadedError: if it refuses a single request as too much.
    """
    cache_tokens = await _cache_tokens(transport)
    server = AskedServer(transport, model)
    seed = secrets.randbits(64) if seed is None else seed
    measured = await measure(server, Texts(seed), most=most, seconds=seconds * 0.8, tell=tell)
    fitted = fit(measured, cache_tokens)
    tell("comparing the profile with the server")
    at_once = min(CHECKED_AT, measured.requests()[-1])
    check = await compare(server, fitted.profile, Texts(seed + 1), at_once)
    return Calibration(fitted.profile, measured, fitted.assumed, check, server.requests, server.usage)


async def _cache_tokens(transport: Transport) -> int | None:
    """How many tokens the server's prefix cache holds; None if the server does not say."""
    if isinstance(transport, ServerTransport):
        async with MetricsProbe(lambda: transport.base_url) as probe:
            load = await probe.load()
    else:
        load = await transport.load() if isinstance(transport, SimBackend) else None
    return None if load is None else load.cache_tokens
