"""What a model's name tells: whether it thinks, how that is switched, and what vLLM is told."""

from __future__ import annotations

import pytest

from flowevolve.core.model_families import family_of

OFF = {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize(
    ("model", "thinks", "parser", "off"),
    [
        ("Qwen/Qwen3-8B", "by default", "qwen3", OFF),
        ("/models/qwen3-0.6b", "by default", "qwen3", OFF),
        ("Qwen/Qwen3.5-35B-A3B", "by default", "qwen3", OFF),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", "always", "qwen3", None),
        ("Qwen/QwQ-32B", "always", "deepseek_r1", None),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "always", "deepseek_r1", None),
        ("deepseek-ai/DeepSeek-V3.1", "if asked", "deepseek_v3", {"chat_template_kwargs": {"thinking": False}}),
        ("zai-org/GLM-4.5-Air", "by default", "glm45", OFF),
        ("openai/gpt-oss-20b", "always", "openai_gptoss", None),
        ("mistralai/Magistral-Small-2509", "always", "mistral", None),
        ("ibm-granite/granite-3.2-2b-instruct", "if asked", "granite", {"chat_template_kwargs": {"thinking": False}}),
        ("HuggingFaceTB/SmolLM3-3B", "by default", None, OFF),
        ("o3-mini", "always", None, None),
        ("gpt-5-mini", "by default", None, {"reasoning_effort": "minimal"}),
        ("azure/gpt-5.1", "by default", None, {"reasoning_effort": "none"}),
        ("gemini/gemini-2.5-flash", "by default", None, {"reasoning_effort": "none"}),
        ("anthropic/claude-sonnet-4-5", "if asked", None, {}),
    ],
)
def test_a_family_is_known_by_the_name(model: str, thinks: str, parser: str | None, off: object) -> None:
    family = family_of(model)
    assert family is not None
    assert (family.thinks, family.parser, family.switch_off) == (thinks, parser, off)


@pytest.mark.parametrize(
    "model",
    [
        "Qwen/Qwen3-30B-A3B-Instruct-2507",
        "Qwen/Qwen3-Coder-30B-A3B-Instruct",
        "Qwen/Qwen3-Embedding-0.6B",
        "Qwen/Qwen3-8B-Base",
        "Qwen/Qwen2.5-7B-Instruct",
        "gpt-4.1-mini",
        "gpt-5-chat-latest",
        "meta-llama/Llama-3.1-8B-Instruct",
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "m",
    ],
)
def test_models_that_do_not_think_are_in_none(model: str) -> None:
    assert family_of(model) is None
