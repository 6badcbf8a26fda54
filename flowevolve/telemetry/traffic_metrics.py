"""Prometheus metrics of endpoints and hedged requests. They are read from the run's own figures at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from flowevolve.llm.client.hedging import HedgeStats
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.transports.endpoint import EndpointStats

_ENDPOINTS: tuple[tuple[str, str, Callable[[EndpointStats], int]], ...] = (
    ("flowevolve_endpoint_requests", "Requests sent to it", lambda stats: stats.requests),
    ("flowevolve_endpoint_failures", "Requests that found it gone or broken", lambda stats: stats.failures),
    ("flowevolve_endpoint_refusals", "Requests that it answered with a 429", lambda stats: stats.refusals),
    ("flowevolve_endpoint_ejections", "How often it was ejected", lambda stats: stats.ejections),
)
_HEDGES: tuple[tuple[str, str, Callable[[HedgeStats], int]], ...] = (
    ("flowevolve_hedges", "Second requests for overdue calls", lambda stats: stats.sent),
    ("flowevolve_hedges_won", "Of these, those that were answered first", lambda stats: stats.won),
    (
        "flowevolve_hedge_lost_tokens_estimate",
        "Tokens of cancelled requests, rather too high",
        lambda stats: stats.lost_tokens_estimate,
    ),
)


class TrafficMetrics(Collector):
    """The metrics of one run; none before the run has begun. They may be read in another thread than the run's."""

    def __init__(self) -> None:
        self._traffic: Traffic | None = None

    def watch(self, traffic: Traffic) -> None:
        """Report the figures of this traffic from now on."""
        self._traffic = traffic

    def collect(self) -> Iterable[Metric]:
        """Yield the present metrics."""
        if self._traffic is None:
            return
        endpoints = self._traffic.endpoints()
        if endpoints:
            for name, meaning, of in _ENDPOINTS:
                family = CounterMetricFamily(name, meaning, labels=["endpoint"])
                for endpoint in endpoints:
                    family.add_metric([endpoint.url], of(endpoint))
                yield family
            in_flight = GaugeMetricFamily("flowevolve_endpoint_in_flight", "Requests in flight", labels=["endpoint"])
            for endpoint in endpoints:
                in_flight.add_metric([endpoint.url], endpoint.in_flight)
            yield in_flight
        if self._traffic.hedging is not None:
            for name, meaning, of_hedges in _HEDGES:
                yield CounterMetricFamily(name, meaning, value=of_hedges(self._traffic.hedging.stats))
