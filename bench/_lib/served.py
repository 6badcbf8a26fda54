"""Opens a run's roles so that all of them use one server of a bench."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from flowevolve.config.roles import ResolvedRole
from flowevolve.config.run import Config
from flowevolve.core.events import Log, log_nothing
from flowevolve.core.model import Transport
from flowevolve.llm.client.ensemble import Ensemble
from flowevolve.llm.client.role import Role
from flowevolve.runner.llm import open_roles
from flowevolve.runner.vllm_server import OurServers


@asynccontextmanager
async def served_by(
    server: Transport,
    config: Config,
    roles: Mapping[str, ResolvedRole],
    ours: OurServers | None = None,
    log: Log = log_nothing,
) -> AsyncIterator[dict[str, Role]]:
    """Open the roles of a run as `open_roles` does, but all of them at this server."""
    async with open_roles(config, roles, ours, log) as opened:
        yield {name: _through(server, role) for name, role in opened.items()}


def _through(server: Transport, role: Role) -> Role:
    if isinstance(role, Ensemble):
        role.members = tuple(replace(member, transport=server) for member in role.members)
        return role
    return replace(role, transport=server)
