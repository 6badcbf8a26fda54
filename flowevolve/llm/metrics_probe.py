"""A server's load from its Prometheus metrics, with the names vLLM gives them."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import aiohttp
import anyio
from prometheus_client.parser import text_string_to_metric_families

from flowevolve.concurrency import run_all
from flowevolve.llm.admission import Probe, ServerLoad

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
PROBE_SECONDS = 5.0
"""How long one answer may take."""


class MetricsProbe:
    """Reads ``/metrics`` beside the API at ``base_url`` (with or without its ``/v1``). An async context manager."""

    def __init__(self, base_url: str) -> None:
        self.url = base_url.rstrip("/").removesuffix("/v1") + "/metrics"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = await aiohttp.ClientSession().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def load(self) -> ServerLoad | None:
        """As `flowevolve.llm.admission.Probe.load`: None if there is no answer, or another server's metrics."""
        if self._session is None:
            return None
        try:
            with anyio.fail_after(PROBE_SECONDS):
                async with self._session.get(self.url, raise_for_status=True) as response:
                    text = await response.text()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return None
        return parse_load(text)


class SummedProbe:
    """The load of several servers together: of those that answer; None if none does."""

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes

    async def load(self) -> ServerLoad | None:
        """As `flowevolve.llm.admission.Probe.load`."""
        loads = [load for load in await run_all([probe.load for probe in self._probes]) if load is not None]
        if not loads:
            return None
        return ServerLoad(sum(load.running for load in loads), sum(load.waiting for load in loads))


def parse_load(text: str) -> ServerLoad | None:
    """Running and waiting requests, summed over models and engines; None if the text does not have both."""
    lines = [line for line in text.splitlines() if line.startswith((RUNNING, WAITING))]
    sums: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
        return ServerLoad(int(sums[RUNNING]), int(sums[WAITING]))
    except (ValueError, OverflowError, KeyError, IndexError):
        return None
