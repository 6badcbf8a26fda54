"""The parts between the client and the wire whose figures a run reports: routers, rate limits, hedging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flowevolve.errors import BackendUnreachableError
from flowevolve.llm.endpoint import EndpointStats
from flowevolve.llm.hedging import HedgeStats, Hedging
from flowevolve.llm.limits import Limits, LimitStats
from flowevolve.llm.router import Router
from flowevolve.llm.types import Transport


@dataclass(frozen=True, slots=True)
class TrafficStats:
    """``endpoints`` are routers', ``limits`` those of models that had to wait; ``hedged`` is None without hedging."""

    endpoints: Sequence[EndpointStats] = ()
    limits: Sequence[LimitStats] = ()
    hedged: HedgeStats | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """All of a run's ``transports``, each once, and what goes with them."""

    transports: Sequence[Transport]
    limits: Limits
    hedging: Hedging | None

    def check(self) -> None:
        """After all endpoints were asked.

        Raises:
            BackendUnreachableError: naming those that gave no answer.
        """
        silent = [endpoint.url for endpoint in self.endpoints() if endpoint.ejected]
        if silent:
            raise BackendUnreachableError(
                f"{', '.join(silent)} can't be used, the other endpoints can; start the server, or correct base_urls. "
                "A run would begin without it"
            )

    def endpoints(self) -> list[EndpointStats]:
        """The figures of routers' endpoints up to now."""
        return [endpoint for router in self._routers() for endpoint in router.stats()]

    def stats(self) -> TrafficStats:
        """The figures up to now."""
        hedged = None if self.hedging is None else replace(self.hedging.stats)
        return TrafficStats(self.endpoints(), self.limits.stats(), hedged)

    def _routers(self) -> list[Router]:
        return [transport for transport in self.transports if isinstance(transport, Router)]
