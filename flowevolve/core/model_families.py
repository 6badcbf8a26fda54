"""Families of models, recognized by name: whether they think, how that is switched, and how they are served.

The reasoning parsers of vLLM and the options of chat templates are taken from vLLM's documentation (Reasoning Outputs),
the facts about OpenAI's models from OpenAI's and Azure's guides to reasoning models. A model that matches no pattern
may still think: its replies are read like any other's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from flowevolve._util.json_types import JSON

Fields = Mapping[str, JSON]
"""Fields of a request's body."""
BY_EFFORT: Fields = {"reasoning_effort": "medium"}
NO_EFFORT: Fields = {"reasoning_effort": "none"}
"""The switch of models that have levels of effort."""


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """A family of models that think."""

    thinks: Literal["always", "by default", "if asked"]
    switch_on: Fields = field(default_factory=dict)
    """The fields of a request that make the model think."""
    switch_off: Fields | None = None
    """The fields of a request that keep it from thinking; None if it always thinks."""
    parser: str | None = None
    """The parser with which vLLM separates thoughts from answers (``--reasoning-parser``)."""
    flags: tuple[tuple[str, ...], ...] = ()
    """Other flags that vLLM needs for that."""
    is_openai_reasoning: bool = False
    """Whether it takes requests in the form of OpenAI's reasoning models (`flowevolve.llm.transports.request_form`)."""


def template_switch(name: str, *, on: bool) -> Fields:
    """The fields of a request that set an option of the model's chat template, for vLLM and SGLang."""
    return {"chat_template_kwargs": {name: on}}


def family_of(model: str) -> ModelFamily | None:
    """The family of a model; None if it is not known. The name may be an API's, one at Hugging Face, or a folder's."""
    name = model.lower()
    if _DOES_NOT_THINK.search(name):
        return None
    return next((family for pattern, family in _FAMILIES if re.search(pattern, name)), None)


def _always(parser: str | None = None, *flags: tuple[str, ...]) -> ModelFamily:
    return ModelFamily("always", parser=parser, flags=flags)


def _switched(
    thinks: Literal["by default", "if asked"], parser: str | None, option: str = "enable_thinking"
) -> ModelFamily:
    return ModelFamily(thinks, template_switch(option, on=True), template_switch(option, on=False), parser)


def _openai(lowest_effort: str | None, on: Fields | None = None) -> ModelFamily:
    off: Fields | None = None if lowest_effort is None else {"reasoning_effort": lowest_effort}
    thinks: Literal["always", "by default"] = "always" if off is None else "by default"
    return ModelFamily(thinks, on or {}, off, is_openai_reasoning=True)


_DOES_NOT_THINK = re.compile(r"embed|rerank|reward|guard|-base$|qwen3.*-(instruct|coder|max)|gpt-\d[\d.]*-chat")

_MISTRAL = (("--tokenizer-mode", "mistral"), ("--config-format", "mistral"), ("--load-format", "mistral"))
"""Mistral's reasoning parser reads the tokens of Mistral's own tokenizer."""

_FAMILIES: tuple[tuple[str, ModelFamily], ...] = (
    (r"(^|[/:])o[134](-|$)", _openai(None)),
    (r"(^|[/:])gpt-5(-|$)", _openai("minimal")),
    (r"(^|[/:])gpt-([5-9]|\d\d)([.-]|$)", _openai("none", BY_EFFORT)),
    (r"gpt-oss", _always("openai_gptoss")),
    (r"qwen3.*-thinking", _always("qwen3")),
    (r"qwen3", _switched("by default", "qwen3")),
    (r"qwq", _always("deepseek_r1")),
    (r"deepseek-(r1|reasoner)", _always("deepseek_r1")),
    (r"deepseek-v3\.1", _switched("if asked", "deepseek_v3", "thinking")),
    (r"glm-(4\.[5-9]|[5-9])", _switched("by default", "glm45")),
    (r"magistral", _always("mistral", *_MISTRAL)),
    (r"granite-3\.[23]", _switched("if asked", "granite", "thinking")),
    (r"hunyuan-a13b", _switched("by default", "hunyuan_a13b")),
    (r"ernie-4\.5-.*thinking", _always("ernie45")),
    (r"ernie-4\.5-vl", _switched("by default", "ernie45")),
    (r"minimax-m2", _always("minimax_m2_append_think")),
    (r"kimi-k2-thinking", _always("kimi_k2")),
    (r"holo2", _switched("by default", "holo2", "thinking")),
    (r"gemma-4", _switched("if asked", "gemma4")),
    (r"command-a-reasoning", _always("cohere_command3")),
    (r"olmo-3.*-think", _always("olmo3")),
    (r"seed-oss", _always("seed_oss")),
    (r"nemotron-3", _switched("by default", "nemotron_v3")),
    (r"phi-4.*-reasoning", _always("deepseek_r1")),
    (r"smollm3", _switched("by default", None)),
    (r"gemini-(2\.5|[3-9])", ModelFamily("by default", BY_EFFORT, NO_EFFORT)),
    (r"claude", ModelFamily("if asked", BY_EFFORT, {})),
)
"""The first pattern that matches anywhere in the lower-case name decides."""
