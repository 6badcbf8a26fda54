"""Measuring a server as ``flowevolve calibrate`` does."""

from __future__ import annotations

from flowevolve.llm.scheduling.metrics_probe import MetricsProbe
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.sim.calibration.calibrate import Calibration, calibrate


async def calibrated(url: str, model: str) -> Calibration:
    """Measure a server with up to 64 requests at a time, and print what is done."""
    transport = AioHTTPTransport(url, None, max_connections=256)
    try:
        async with MetricsProbe(lambda: url) as probe:
            load = await probe.load()
        cache = None if load is None else load.cache_tokens
        return await calibrate(transport, model, most=64, cache_tokens=cache, tell=print)
    finally:
        await transport.aclose()
