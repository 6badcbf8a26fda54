"""What a role leaves out is as in [llm], what a model of an ensemble leaves out as in its role."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.config.llm import LLMSettings, RoleSettings
from flowevolve.config.roles import ResolvedModel, ResolvedRole, model_names, role_settings
from flowevolve.config.run import parse_config

LLM = {"backend": "openai", "model": "m", "base_url": "http://here/v1", "api_key_file": __file__, "temperature": 0.5}


def roles(llm: Mapping[str, object], called: tuple[str, ...] = ("task",)) -> dict[str, ResolvedRole]:
    return role_settings(parse_config({"budget": {"proposals": 1}, "llm": llm}, "test"), called)


def one(role: Mapping[str, object], **llm: object) -> ResolvedModel:
    [model] = roles({**LLM, **llm, "roles": {"r": role}})["r"].models
    return model


def test_a_role_that_is_a_text_is_a_model() -> None:
    llm = LLMSettings.model_validate({"backend": "openai", "model": "m", "roles": {"reflection": "n"}})
    assert llm.roles["reflection"] == RoleSettings(model="n")


def test_a_role_is_as_llm_unless_it_says_otherwise() -> None:
    plain, other = one({}), one({"temperature": 0, "send_seed": False, "extra": {"top_k": 1}, "model": "n"})
    assert (plain.name, plain.llm.temperature, plain.llm.send_seed, plain.llm.extra) == ("m", 0.5, True, {})
    assert (other.name, other.llm.temperature, other.llm.send_seed, other.llm.extra) == ("n", 0, False, {"top_k": 1})
    assert other.backend == plain.backend


@pytest.mark.parametrize(
    "role",
    [
        {"base_url": "http://there/v1"},
        {"transport": "aiohttp"},
        {"api_key_file": str(Path(__file__).parents[1] / "conftest.py")},
        {"api_key_env": "K"},
    ],
)
def test_another_backend_is_told_apart(role: dict[str, object]) -> None:
    assert one(role).backend != one({}).backend


def test_who_names_a_place_for_the_key_names_the_only_one() -> None:
    assert one({}).llm.api_key_file == Path(__file__)
    named = one({"api_key_env": "THEIR_KEY"}).llm
    assert (named.api_key_env, named.api_key_file) == ("THEIR_KEY", None)


def test_models_of_an_ensemble_are_as_their_role() -> None:
    entries = [{"model": "a", "weight": 2}, {"model": "b", "base_url": "http://there/v1", "max_tokens": 9}]
    role = roles({**LLM, "roles": {"r": {"temperature": 1, "concurrency": 3, "models": entries}}})["r"]
    assert [(model.name, model.weight, model.llm.temperature) for model in role.models] == [("a", 2, 1), ("b", 1, 1)]
    assert [(model.llm.base_url, model.llm.max_tokens) for model in role.models] == [
        ("http://here/v1", None),
        ("http://there/v1", 9),
    ]
    assert role.concurrency == 3


@pytest.mark.parametrize(
    ("backend", "here", "there"), [("vllm", True, False), ("openai", False, False), ("sim", True, False)]
)
def test_a_server_of_ours_must_have_a_list_of_models_and_a_remote_api_need_not(
    backend: str, here: bool, there: bool
) -> None:
    plain, other = one({"model": "n"}, backend=backend), one({"base_url": "https://there/v1"}, backend=backend)
    assert (plain.must_have_list, other.must_have_list) == (here, there)


@pytest.mark.parametrize(
    ("said", "must"),
    [
        ({}, True),
        ({"unlisted_models": True}, False),
        ({"base_url": "https://h", "azure_api_version": "2024-10-21"}, False),
    ],
)
def test_what_a_list_lacks_is_not_served_unless_the_list_may_be_incomplete(said: dict[str, object], must: bool) -> None:
    assert one({"model": "n"}, backend="openai", **said).must_be_listed is must


def test_roles_that_are_called_come_first_and_models_are_named_once() -> None:
    found = roles({**LLM, "roles": {"judge": {"model": "n"}, "task": {}}}, ("task", "reflection"))
    assert list(found) == ["task", "reflection", "judge"]
    assert model_names(found.values()) == ("m", "n")


def test_a_model_knows_the_setting_that_names_it() -> None:
    entries = [{"model": "a"}, {"model": "b"}]
    found = roles(
        {**LLM, "roles": {"judge": {"model": "n"}, "reflection": {"models": entries}}}, ("task", "reflection")
    )
    assert {name: [model.named_by for model in role.models] for name, role in found.items()} == {
        "task": ["llm.model"],
        "reflection": ["llm.roles.reflection.models"] * 2,
        "judge": ["llm.roles.judge.model"],
    }


def test_a_model_may_be_named_by_the_roles_alone() -> None:
    assert model_names(roles({"backend": "openai", "roles": {"task": {"model": "n"}}}).values()) == ("n",)
    with pytest.raises(InputError, match=r"^llm\.model is missing; set it to the name that the server knows"):
        roles({"backend": "openai"})
    with pytest.raises(InputError, match=r"llm\.model is missing, and so is llm\.roles\.reflection\.model; set one"):
        roles({"backend": "openai", "roles": {"task": {"model": "n"}}}, ("task", "reflection"))


MISTAKES: dict[str, tuple[dict[str, object], str]] = {
    "unknown key of a role": ({"roles": {"r": {"modle": "x"}}}, r"llm\.roles\.r\.modle: .* did you mean 'model'"),
    "unknown key of a model": (
        {"roles": {"r": {"models": [{"model": "a", "wieght": 1}]}}},
        r"llm\.roles\.r\.models\.0\.wieght: .* did you mean 'weight'",
    ),
    "model without a name": ({"roles": {"r": {"models": [{"weight": 1}]}}}, r"models\.0\.model is missing"),
    "no weight": (
        {"roles": {"r": {"models": [{"model": "a", "weight": 0}]}}},
        r"models\.0\.weight is 0, but has to be above 0",
    ),
    "bandit alone": ({"roles": {"r": {"bandit": "ucb"}}}, r"llm\.roles\.r: .*at least two models"),
    "bandit of equals": ({"roles": {"r": {"bandit": "ucb", "models": [{"model": "a"}] * 2}}}, "a name of its own"),
    "bandit with weights": (
        {"roles": {"r": {"bandit": "ucb", "models": [{"model": "a", "weight": 1}, {"model": "b"}]}}},
        "leave out either the weights or the bandit",
    ),
    "zero concurrency": ({"roles": {"r": {"concurrency": 0}}}, r"llm\.roles\.r\.concurrency"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake: str) -> None:
    llm, says = MISTAKES[mistake]
    with pytest.raises(InputError, match=says):
        roles(llm)


@pytest.mark.parametrize(
    "url",
    [
        *("localhost:8000/v1", "/v1", "", "http:/here/v1", "ftp://here/v1"),
        *("http://here:99999/v1", "http://here:x/v1", "http://here:0/v1", "http://:8000/v1", "http://[here/v1"),
    ],
)
@pytest.mark.parametrize("where", ["base_url", "base_urls", "role"])
def test_what_is_no_address_is_said_to_be_none(url: str, where: str) -> None:
    ways: dict[str, dict[str, object]] = {
        "base_url": {"base_url": url},
        "base_urls": {"base_urls": ["http://a/v1", url]},
        "role": {"roles": {"r": {"base_url": url}}},
    }
    with pytest.raises(InputError, match=r"base_urls?.*is no address.*https?://.*port") as caught:
        roles({"backend": "openai", "model": "m", **ways[where]})
    assert repr(url) in str(caught.value)


SECRETS: dict[str, dict[str, object]] = {
    "key in place of a variable": {"api_key_env": "sk-secret"},
    "key in place of a variable, with letters a variable could have": {"api_key_env": "hf_secret"},
    "key of its own": {"api_key": "sk-secret"},
    "key of a role": {"roles": {"r": {"api_key": "sk-secret"}}},
    "key of a model": {"roles": {"r": {"models": [{"model": "a", "api_key": "sk-secret"}]}}},
    "key in place of a file": {"api_key_file": "sk-secret"},
    "key in the address": {"base_url": "http://user:sk-secret@here/v1"},
    "key in what is no address": {"base_url": "http:/user:sk-secret@here/v1"},
}


@pytest.mark.parametrize("secret", SECRETS)
def test_a_key_in_the_configuration_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(
        InputError, match=r"api_key_env.* or .*api_key_file|api_key_file: there is no such file"
    ) as caught:
        roles(SECRETS[secret])
    assert "secret" not in str(caught.value)


def test_thinking_is_stripped_unless_a_role_keeps_it() -> None:
    assert one({}).llm.thinking == "strip"
    assert one({"thinking": "keep"}).llm.thinking == "keep"
    assert one({"thinking": "strip"}, thinking="keep").llm.thinking == "strip"
    with pytest.raises(InputError, match=r"llm.thinking is .*, but has to be 'strip' or 'keep'"):
        one({}, thinking="hide")


AZURE = {"base_url": "https://mine.openai.azure.com", "azure_api_version": "2024-10-21"}


def test_azures_form_is_that_of_one_address() -> None:
    role = one({}, **AZURE)
    assert (role.llm.azure_api_version, role.backend == one({}).backend) == ("2024-10-21", False)
    assert one({"base_url": "http://there/v1"}, **AZURE).llm.azure_api_version is None
    assert one({"base_urls": ["http://there/v1"]}, **AZURE).llm.azure_api_version is None
    assert one(AZURE).llm.azure_api_version == "2024-10-21"


@pytest.mark.parametrize(
    ("llm", "says"),
    [
        ({"azure_api_version": "latest", "base_url": "https://mine.openai.azure.com"}, "llm.azure_api_version"),
        ({"azure_api_version": "2024-10-21", "base_url": None}, "azure_api_version needs base_url, the address"),
    ],
)
def test_azures_settings_are_checked(llm: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        one({}, **llm)
