"""What a run reports about its LLM traffic: the figures of routers, rate limits and hedging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flowevolve._util.errors import BackendUnreachableError
from flowevolve.core.model import Transport
from flowevolve.llm.client.hedging import HedgeStats, Hedging
from flowevolve.llm.scheduling.rate_limits import Limits, LimitStats
from flowevolve.llm.transports.endpoint import EndpointStats
from flowevolve.llm.transports.router import Router


@dataclass(frozen=True, slots=True)
class TrafficStats:
    """Figures of the routers' endpoints, of models that waited for a limit, and of hedging (None: not used)."""

    endpoints: Sequence[EndpointStats] = ()
    limits: Sequence[LimitStats] = ()
    hedged: HedgeStats | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """A run's transports, each once, its rate limits and its hedging."""

    transports: Sequence[Transport]
    limits: Limits
    hedging: Hedging | None

    def check(self) -> None:
        """Check that no endpoint of a router is down; to be called after all were asked for their models.

        Raises:
            BackendUnreachableError: naming the endpoints that gave no answer.
        """
        silent = [endpoint.url for endpoint in self.endpoints() if endpoint.ejected]
        if silent:
            raise BackendUnreachableError(
                f"{', '.join(silent)} can't be used, but the other endpoints can. Start what is missing, or correct "
                "llm.base_urls; a run would begin without it"
            )

    def endpoints(self) -> list[EndpointStats]:
        """The figures of routers' endpoints up to now."""
        return [endpoint for router in self._routers() for endpoint in router.stats()]

    def move(self, url: str, to: str) -> None:
        """Have the routers' endpoint at ``url`` replaced by a new one at ``to``."""
        for router in self._routers():
            router.move(url, to)

    def stats(self) -> TrafficStats:
        """The figures up to now."""
        hedged = None if self.hedging is None else replace(self.hedging.stats)
        return TrafficStats(self.endpoints(), self.limits.stats(), hedged)

    def _routers(self) -> list[Router]:
        return [transport for transport in self.transports if isinstance(transport, Router)]
