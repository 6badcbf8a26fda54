"""What stands behind a role's name: a model on a backend, and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flowevolve.llm.calls import CallScope
from flowevolve.llm.gate import Gate
from flowevolve.llm.types import JSON, Transport


@dataclass(frozen=True, slots=True)
class Role:
    """What stands behind a role's name: a model on a backend, and how it is asked.

    Where it is one of several, `flowevolve.llm.ensemble.Ensemble` holds them.
    """

    transport: Transport
    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    timeout_seconds: float = 600.0
    """For one attempt, from sending the request to the end of the answer."""
    send_seed: bool = True
    send_priority: bool = False
    """Send `server_priority`. Only for servers that schedule by it: others turn the unknown parameter down."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    stream: bool = False
    idle_seconds: float | None = None
    """As a request's."""
    gate: Gate | None = None
    """A bound on its own requests in flight, inside that of the run."""
    must_be_listed: bool = True
    """Whether its backend's list of models must have it: that of a remote API need not be complete, nor be there."""

    @property
    def members(self) -> tuple[Role, ...]:
        return (self,)

    def draw(self, run_seed: int, scope: CallScope) -> Role:
        """The model for a call: there is only one."""
        return self
