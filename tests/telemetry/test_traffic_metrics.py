"""The metrics of endpoints and hedged requests, as Prometheus scrapes them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from flowevolve.core.model import ChatReply, ChatRequest, Message, UnreachableError
from flowevolve.llm.client.hedging import Hedging
from flowevolve.llm.client.traffic import Traffic
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.router import Router
from flowevolve.telemetry.traffic_metrics import TrafficMetrics

pytestmark = pytest.mark.anyio
REQUEST = ChatRequest("m", (Message("user", "x"),))


class Endpoint:
    def __init__(self, *, works: bool) -> None:
        self.works = works

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        if not self.works:
            raise UnreachableError("reset")
        return ChatReply("y")

    async def models(self) -> tuple[str, ...]:
        return ("m",)

    async def aclose(self) -> None:
        pass


async def test_endpoints_and_hedges_are_counted_once_the_run_has_begun() -> None:
    scheduler = Scheduler(8)
    limits = Limits(scheduler)
    router = Router({"http://a/v1": Endpoint(works=True), "http://b/v1": Endpoint(works=False)})
    metrics, registry = TrafficMetrics(), CollectorRegistry()
    registry.register(metrics)
    assert generate_latest(registry) == b""
    metrics.watch(Traffic([router], limits, Hedging(scheduler, limits, 0.1)))
    for _ in range(20):
        try:
            await router.chat(REQUEST, timeout=1.0)
        except UnreachableError:
            continue
    text = generate_latest(registry).decode()
    first, second = router.stats()
    assert f'flowevolve_endpoint_requests_total{{endpoint="http://a/v1"}} {float(first.requests)}' in text
    assert f'flowevolve_endpoint_failures_total{{endpoint="http://b/v1"}} {float(second.failures)}' in text
    assert second.failures > 0
    assert f'flowevolve_endpoint_ejections_total{{endpoint="http://b/v1"}} {float(second.ejections)}' in text
    assert 'flowevolve_endpoint_in_flight{endpoint="http://a/v1"} 0.0' in text
    assert "flowevolve_hedges_total 0.0" in text
    assert "flowevolve_hedges_won_total 0.0" in text
    assert "flowevolve_hedge_lost_tokens_estimate_total 0.0" in text


async def test_where_there_is_nothing_to_tell_nothing_is_told() -> None:
    metrics, registry = TrafficMetrics(), CollectorRegistry()
    registry.register(metrics)
    metrics.watch(Traffic([Endpoint(works=True)], Limits(Scheduler(1)), None))
    assert generate_latest(registry) == b""
