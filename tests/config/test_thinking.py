"""How a role's thinking is switched, by what its model is, and the room that its limits get for it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from flowevolve._util.errors import InputError
from flowevolve.config.roles import ResolvedModel, role_settings
from flowevolve.config.run import parse_config

ON, OFF = ({"chat_template_kwargs": {"enable_thinking": on}} for on in (True, False))


def one(role: Mapping[str, object], **llm: object) -> ResolvedModel:
    table = {"backend": "openai", "base_url": "http://here/v1", "model": "Qwen/Qwen3-8B", **llm, "roles": {"r": role}}
    roles = role_settings(parse_config({"budget": {"proposals": 1}, "llm": table}, "test"), ())
    [model] = roles["r"].models
    return model


def test_nothing_is_sent_where_nothing_is_said() -> None:
    assert one({}).chat_extra == {}
    assert one({"extra": {"top_k": 1}}).chat_extra == {"top_k": 1}


@pytest.mark.parametrize(
    ("model", "on", "off"),
    [
        ("Qwen/Qwen3-8B", ON, OFF),
        ("their-model", ON, OFF),
        (
            "deepseek-ai/DeepSeek-V3.1",
            {"chat_template_kwargs": {"thinking": True}},
            {"chat_template_kwargs": {"thinking": False}},
        ),
        ("gpt-5", {}, {"reasoning_effort": "minimal"}),
        ("gpt-5.1", {"reasoning_effort": "medium"}, {"reasoning_effort": "none"}),
    ],
)
def test_thinking_is_switched_as_the_family_has_it(model: str, on: object, off: object) -> None:
    assert one({"model": model, "enable_thinking": True}).chat_extra == on
    assert one({"model": model, "enable_thinking": False}).chat_extra == off


def test_a_role_may_think_otherwise_than_the_rest() -> None:
    assert one({"enable_thinking": True}, enable_thinking=False).chat_extra == ON
    assert one({"enable_thinking": False}, reasoning_effort="high").chat_extra == OFF
    assert one({"reasoning_effort": "low", "model": "gpt-oss-20b"}).chat_extra == {"reasoning_effort": "low"}


def test_what_the_user_says_in_extra_goes_before_and_is_joined() -> None:
    extra = {"chat_template_kwargs": {"custom": 1}, "top_k": 1}
    assert one({"enable_thinking": False, "extra": extra}).chat_extra == {
        "chat_template_kwargs": {"enable_thinking": False, "custom": 1},
        "top_k": 1,
    }


@pytest.mark.parametrize("model", ["Qwen/QwQ-32B", "o3", "openai/gpt-oss-20b", "Qwen/Qwen3-4B-Thinking-2507"])
def test_what_always_thinks_cannot_be_switched_off(model: str) -> None:
    assert one({"model": model, "enable_thinking": True}).chat_extra == {}
    with pytest.raises(InputError, match=f"llm.enable_thinking: '{model}' always thinks"):
        one({"model": model, "enable_thinking": False})


@pytest.mark.parametrize(("on", "effort"), [(False, "high"), (True, "none")])
def test_two_that_contradict_each_other_are_refused(on: bool, effort: str) -> None:
    with pytest.raises(InputError, match="leave out one of the two"):
        one({"enable_thinking": on, "reasoning_effort": effort})


@pytest.mark.parametrize(
    ("role", "room"),
    [
        ({}, 8192),
        ({"enable_thinking": False}, 0),
        ({"thinking_tokens": 100}, 100),
        ({"thinking_tokens": 0}, 0),
        ({"model": "meta/Llama-3.1-8B"}, 0),
        ({"model": "their-model", "enable_thinking": True}, 8192),
        ({"model": "ibm-granite/granite-3.2-8b-instruct"}, 0),
        ({"model": "ibm-granite/granite-3.2-8b-instruct", "enable_thinking": True}, 8192),
        ({"model": "o3"}, 8192),
        ({"model": "gpt-5.1", "reasoning_effort": "none"}, 0),
        ({"model": "their-deployment", "reasoning_effort": "low"}, 8192),
    ],
)
def test_limits_have_room_for_thinking_where_there_is_some(role: dict[str, object], room: int) -> None:
    assert one(role).room_for_thinking == room


def test_the_simulated_server_does_not_think_whatever_its_model_is_called() -> None:
    model = one({}, backend="sim", base_url=None, enable_thinking=True)
    assert (model.chat_extra, model.room_for_thinking) == ({}, 0)


@pytest.mark.parametrize("wrong", [{"reasoning_effort": "huge"}, {"thinking_tokens": -1}, {"enable_thinking": "maybe"}])
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"llm.roles.r.{next(iter(wrong))}"):
        one(wrong)
