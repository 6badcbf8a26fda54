"""How requests switch thinking on or off and leave room for it, by a model's settings and the family its name shows."""

from __future__ import annotations

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.config.backends import SIMULATED_BACKENDS
from flowevolve.config.llm import LLMSettings
from flowevolve.core.model_families import BY_EFFORT, NO_EFFORT, Fields, family_of, template_switch


def chat_extra(llm: LLMSettings, model: str) -> dict[str, JSON]:
    """The additional fields of every chat request to the model: its switch for thinking, and ``extra``.

    Raises:
        InputError: if the model's thinking can't be switched as the settings say.
    """
    switch = {} if llm.backend in SIMULATED_BACKENDS else _switch(llm, model)
    fields: dict[str, JSON] = {**switch, **llm.extra}
    ours, theirs = switch.get("chat_template_kwargs"), llm.extra.get("chat_template_kwargs")
    if isinstance(ours, dict) and isinstance(theirs, dict):
        fields["chat_template_kwargs"] = {**ours, **theirs}
    return fields


def room_for_thinking(llm: LLMSettings, model: str) -> int:
    """How many tokens are added to a request's limit, so that the limit applies to the answer; 0 if the model won't
    think.
    """
    return llm.thinking_tokens if llm.backend not in SIMULATED_BACKENDS and _thinks(llm, model) else 0


def _thinks(llm: LLMSettings, model: str) -> bool:
    if llm.reasoning_effort is not None:
        return llm.reasoning_effort != "none"
    if llm.enable_thinking is not None:
        return llm.enable_thinking
    family = family_of(model)
    return family is not None and family.thinks != "if asked"


def _switch(llm: LLMSettings, model: str) -> Fields:
    effort: Fields = {} if llm.reasoning_effort is None else {"reasoning_effort": llm.reasoning_effort}
    if llm.enable_thinking is None:
        return effort
    if llm.reasoning_effort is not None and llm.enable_thinking == (llm.reasoning_effort == "none"):
        raise InputError(
            f"llm.enable_thinking is {str(llm.enable_thinking).lower()} for {model!r}, but reasoning_effort is "
            f"{llm.reasoning_effort!r}; leave out one of the two"
        )
    return {**_on_or_off(llm, model, on=llm.enable_thinking), **effort}


def _on_or_off(llm: LLMSettings, model: str, *, on: bool) -> Fields:
    family = family_of(model)
    if family is not None and not on and family.switch_off is None:
        raise InputError(
            f"llm.enable_thinking: {model!r} always thinks; leave it out, and set reasoning_effort = 'low' if it "
            "has levels of effort"
        )
    if llm.backend == "litellm":  # LiteLLM has this one switch for all providers
        return BY_EFFORT if on else NO_EFFORT
    if family is None:
        return template_switch("enable_thinking", on=on)
    return family.switch_on if on else family.switch_off or {}
