"""Public names that have changed: those of the last minor version still work, those of 0.1 are told in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from flowevolve._util.user_warnings import warn_of_old_name

RENAMED: Mapping[str, str] = {
    "Section": "Settings",
    "agents": "prompts",
    "algorithm": "core.algorithm",
    "archives.islands": "algorithms.code_evolve.islands",
    "archives.map_elites": "algorithms.levi.map_elites",
    "archives.memory": "algorithms.cse.memory",
    "archives.playbook": "algorithms.ace.playbook",
    "artifact": "core.artifact",
    "budget": "core.budget",
    "compat.folders": "problems.folders",
    "context": "core.context",
    "errors": "InputError and its like",
    "events": "core.events",
    "item": "core.item",
    "llm.accounting": "llm.client.accounting",
    "llm.admission": "llm.scheduling.admission",
    "llm.aiohttp": "llm.transports.aiohttp",
    "llm.cache": "llm.client.cache",
    "llm.calls": "core.calls",
    "llm.ensemble": "llm.client.ensemble",
    "llm.gate": "llm.scheduling.scheduler",
    "llm.hedging": "llm.client.hedging",
    "llm.keys": "read_key",
    "llm.limits": "llm.scheduling.rate_limits",
    "llm.line": "llm.scheduling.request_queue",
    "llm.openai": "llm.transports.openai",
    "llm.rates": "llm.scheduling.model_rates",
    "llm.retry": "llm.client.retry",
    "llm.router": "llm.transports.router",
    "llm.types": "core.model",
    "llm.wire": "llm.transports.wire",
    "memory": "experience",
    "pool": "core.pool",
    "section": "Settings",
    "sim.service": "sim.service_model",
    "sim.world": "sim.worlds.base",
    "stage": "core.graph",
    "stages.recall": "algorithms.cse.recall",
    "stages.remember": "algorithms.cse.remember",
    "stages.update": "stages.commit",
    "store": "journal",
    "tasks.base": "core.task",
}
"""Names and modules of 0.1 below ``flowevolve``, each with its name since 0.2."""


def renamed(name: str) -> str | None:
    """A hint on a name of 0.1, such as ``llm.types`` or ``flowevolve.llm.types.Role``; None if it is not renamed."""
    parts = name.removeprefix("flowevolve.").split(".")
    for length in range(len(parts), 0, -1):
        old = ".".join(parts[:length])
        if old in RENAMED:
            return f"flowevolve.{old} of 0.1 is flowevolve.{RENAMED[old]} since 0.2"
    return None


def under_new_name(module: str, name: str, new_names: Mapping[str, str]) -> object:
    """What a module's ``__getattr__`` returns for one of the old names that it still has: the object with the new name.

    Raises:
        AttributeError: if it is not one of these names.
    """
    if name not in new_names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    new = f"{module}.{new_names[name]}"
    warn_of_old_name(f"{module}.{name} is now {new}: write that, as the next minor version no longer has the old name")
    return resolve_name(new)
