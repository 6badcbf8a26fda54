"""Backends by name: those that ship, made by `flowevolve.runner.llm`, and the transports that plug-ins bring."""

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
"""What ships, and what each is."""
REAL_BACKENDS = ("openai", "vllm", "litellm")
"""Those whose servers live in real time."""
SIMULATED_BACKENDS = ("sim", "replay")
"""Those inside this process, whose replies are simulated or recorded, whatever their models are called."""
WITH_OPENAIS_API = ("ollama", "lmstudio", "llama.cpp", "sglang", "tgi", "openrouter", "azure")
"""What people name that is reached through backend ``openai``."""
BACKENDS: Registry[Transport] = Registry(
    "backend", "flowevolve.backends", {}, Transport, [*SHIPPED_BACKENDS], SHIPPED_BACKENDS
)


def known_backend(name: str) -> str:
    """The name, if something is known by it; nothing is imported to find out."""
    if name in SHIPPED_BACKENDS or ":" in name:
        return name
    names = BACKENDS.names()
    if name in WITH_OPENAIS_API and name not in names:
        raise PydanticCustomError("unknown", "has OpenAI's API: give 'openai', and its address as base_url")
    if name not in names:
        raise PydanticCustomError("unknown", "unknown backend; {hint}", {"hint": did_you_mean(name, names)})
    return name
