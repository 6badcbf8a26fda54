"""Backends by name: those that ship, made by `flowevolve.runner.assemble`, and the transports that plug-ins bring."""

from __future__ import annotations

from pydantic_core import PydanticCustomError

from flowevolve._util.registry import Registry, did_you_mean
from flowevolve.core.model import Transport

SHIPPED_BACKENDS = ("sim", "openai", "vllm", "litellm", "replay")
REAL_BACKENDS = ("openai", "vllm", "litellm")
"""Those whose servers live in real time."""
BACKENDS: Registry[Transport] = Registry("backend", "flowevolve.backends", {}, Transport, reserved=SHIPPED_BACKENDS)


def known_backend(name: str) -> str:
    """The name, if something is known by it; nothing is imported to find out."""
    if name in SHIPPED_BACKENDS or ":" in name:
        return name
    names = BACKENDS.names()
    if name not in names:
        raise PydanticCustomError("unknown", "unknown backend; {hint}", {"hint": did_you_mean(name, names)})
    return name
