"""Reads a server's load from its Prometheus metrics, by the names of vLLM's metrics."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from math import isfinite
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import anyio

from flowevolve._util.tasks import Pulse, run_all
from flowevolve.llm.scheduling.admission import Probe, ServerLoad, growth

if TYPE_CHECKING:
    import aiohttp

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
CACHE_USAGE = "vllm:kv_cache_usage_perc"
PREFIX_QUERIES = "vllm:prefix_cache_queries_total"
PREFIX_HITS = "vllm:prefix_cache_hits_total"
CACHE_CONFIG = "vllm:cache_config_info"
"""A metric whose labels give the KV cache's number of blocks, the tokens per block, and whether prefixes are cached."""
PROBE_SECONDS = 5.0
"""The time limit of one answer."""
_MOST_BYTES, _MOST_LINES = 2**22, 10_000
"""How many bytes of an answer are read at most, and how many of its lines with one of these metrics are parsed at most.
Some 30 models with all their engines need a tenth of that.
"""
FRUITLESS = 5
"""A server is not asked again if this many answers, from the first one on, contain none of these metrics."""

_Number = TypeVar("_Number", int, float)


class MetricsProbe:
    """Reads ``/metrics`` of a server. An async context manager.

    ``base_url`` returns the URL of the server's API, with or without ``/v1``. It is called before each request, as the
    server may move. ``unanswered`` is fired whenever there is no answer, or one with a 5xx status.
    """

    def __init__(self, base_url: Callable[[], str], unanswered: Pulse | None = None) -> None:
        self._base_url = base_url
        self._unanswered = unanswered
        self._has_told = False
        self._fruitless = 0
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        import aiohttp  # noqa: PLC0415 - slow to load, and simulated servers need none

        # An uncompressed body can't become larger than what was read of it.
        session = aiohttp.ClientSession(headers={"Accept-Encoding": "identity"}, auto_decompress=False)
        self._session = await session.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def load(self) -> ServerLoad | None:
        """Ask the server, as `Probe.load` says. None if it does not answer, or its metrics are not vLLM's."""
        if self._session is None or self._fruitless >= FRUITLESS:
            return None
        import aiohttp  # noqa: PLC0415 - as above

        url = self._base_url().rstrip("/").removesuffix("/v1") + "/metrics"
        try:
            with anyio.fail_after(PROBE_SECONDS):
                async with self._session.get(url) as response:
                    text = (await _start(response.content.iter_any())).decode("utf-8", "replace")
                    silent = response.status >= 500
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            silent = True
        if silent:
            if self._unanswered is not None:
                self._unanswered.fire()
            return None
        load = parse_load(text) if response.ok else None
        self._has_told = self._has_told or load is not None
        self._fruitless = 0 if self._has_told else self._fruitless + 1
        return load


async def _start(pieces: AsyncIterable[bytes]) -> bytes:
    """The beginning of a body, up to about `_MOST_BYTES`."""
    read = bytearray()
    async for piece in pieces:
        read += piece
        if len(read) > _MOST_BYTES:
            break
    return bytes(read)


class SummedProbe:
    """Adds up the loads of those of several servers that answer; None if none does. Cache usage is averaged.

    The prefix cache counters never decrease, even if a server restarts or does not answer.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._queries = [_Grown() for _ in probes]
        self._hits = [_Grown() for _ in probes]

    async def load(self) -> ServerLoad | None:
        """As `flowevolve.llm.scheduling.admission.Probe.load`."""
        answers = await run_all([probe.load for probe in self._probes])
        for answer, queries, hits in zip(answers, self._queries, self._hits, strict=True):
            if answer is not None:
                queries.see(answer.prefix_queries)
                hits.see(answer.prefix_hits)
        loads = [load for load in answers if load is not None]
        if not loads:
            return None
        usages = [load.cache_usage for load in loads if load.cache_usage is not None]
        return ServerLoad(
            sum(load.running for load in loads),
            sum(load.waiting for load in loads),
            sum(usages) / len(usages) if usages else None,
            _known_sum([counter.total for counter in self._queries]),
            _known_sum([counter.total for counter in self._hits]),
            _known_sum([load.cache_tokens for load in loads]),
        )


class _Grown:
    """The total growth of a counter across restarts of its server; None until it was first reported."""

    def __init__(self) -> None:
        self.total: float | None = None
        self._last: float | None = None

    def see(self, value: float | None) -> None:
        if value is not None:
            self.total = (self.total or 0.0) + growth(self._last, value)
            self._last = value


def parse_load(text: str) -> ServerLoad | None:
    """The load summed over all models and engines; None if the text lacks the running or the waiting requests."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - slow to load

    names = (RUNNING, WAITING, CACHE_USAGE, PREFIX_QUERIES, PREFIX_HITS, CACHE_CONFIG)
    lines = [line for line in text.splitlines() if line.startswith(names)][:_MOST_LINES]
    values: dict[str, list[float]] = {}
    caches: list[int | None] = []
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                values.setdefault(sample.name, []).append(sample.value)
                if sample.name == CACHE_CONFIG:
                    caches.append(_cache_tokens(sample.labels))
        running, waiting = int(sum(values[RUNNING])), int(sum(values[WAITING]))
    except (ValueError, OverflowError, KeyError, IndexError):
        return None
    usage = values.get(CACHE_USAGE)
    return ServerLoad(
        running,
        waiting,
        None if usage is None else _finite(sum(usage) / len(usage)),
        _sum(values, PREFIX_QUERIES),
        _sum(values, PREFIX_HITS),
        _known_sum(caches),
    )


def _cache_tokens(labels: Mapping[str, str]) -> int | None:
    """The tokens that a prefix cache holds; None if the labels don't say."""
    if labels.get("enable_prefix_caching") == "False":
        return 0
    blocks, tokens = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    return int(blocks) * int(tokens) if blocks.isdecimal() and tokens.isdecimal() else None


def _known_sum(numbers: Sequence[_Number | None]) -> _Number | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _sum(values: Mapping[str, Sequence[float]], name: str) -> float | None:
    return _finite(sum(values[name])) if name in values else None


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
