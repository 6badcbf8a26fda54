"""Backends by name: those that ship, which `flowevolve.runner.llm` opens, and the transports that plug-ins provide."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import PydanticCustomError

from flowevolve._util.registry import Registry, did_you_mean
from flowevolve.core.model import Transport

SHIPPED_BACKENDS: Mapping[str, str] = {
    "sim": "A simulated server inside this process: no key, no GPU, and texts that are no LLM's.",
    "openai": "Any server with OpenAI's API, at llm.base_url; by default OpenAI's own.",
    "vllm": "A vLLM at llm.base_url, or one that is started for the run where none is named.",
    "litellm": "Whatever LiteLLM knows by the model's name: anthropic/…, gemini/…, bedrock/… (an extra).",
    "replay": "The replies of a recorded run; `flowevolve replay` sets it.",
}
"""The backends that ship, with a description of each."""
REAL_BACKENDS = ("openai", "vllm", "litellm")
"""The shipped backends whose servers answer in real time."""
SIMULATED_BACKENDS = ("sim", "replay")
"""The shipped backends inside this process, whose replies are simulated or recorded, whatever names their models have.
"""
WITH_OPENAIS_API = ("ollama", "lmstudio", "llama.cpp", "sglang", "tgi", "openrouter", "azure")
"""Names that users give as a backend for servers that are reached through backend ``openai``."""
BACKENDS: Registry[Transport] = Registry(
    "backend", "flowevolve.backends", {}, Transport, [*SHIPPED_BACKENDS], SHIPPED_BACKENDS
)


def known_backend(name: str) -> str:
    """Return ``name`` if it is the name of a backend. Nothing is imported to find out.

    Raises:
        PydanticCustomError: if there is no such backend.
    """
    if name in SHIPPED_BACKENDS or ":" in name:
        return name
    names = BACKENDS.names()
    if name in WITH_OPENAIS_API and name not in names:
        message = "a server of {name} has OpenAI's API; set backend to 'openai', and base_url to the server's address"
        raise PydanticCustomError("unknown", message, {"name": repr(name)})
    if name not in names:
        raise PydanticCustomError(
            "unknown", "unknown backend {name}; {hint}", {"name": repr(name), "hint": did_you_mean(name, names)}
        )
    return name
