"""From a configuration to what makes the LLM calls of a run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from aiohttp import web

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve._util.registry import Registry
from flowevolve.algorithms.gepa import GEPA
from flowevolve.config.run import Config, parse_config
from flowevolve.core.model import ChatRequest, HasBaseURL, Message, RejectedError, Transport
from flowevolve.llm.client.role import Role
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport
from flowevolve.runner import assemble as build
from flowevolve.runner.llm import make_roles, open_roles
from tests.llm.transports.test_azure import KEY, VERSION, azure
from tests.support.loopback import server


class Navigating(GEPA):
    """An algorithm that calls a role of its own."""

    name = "navigating"
    roles = ("task", "navigator")


def test_a_run_has_the_roles_its_algorithm_calls_and_those_the_config_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ALGORITHMS", Registry("algorithm", "nowhere", {"navigating": Navigating}))
    config = parse_config(
        {
            "algorithm": {"name": "navigating"},
            "budget": {"proposals": 1},
            "llm": {"roles": {"judge": {"temperature": 0.0}}},
        },
        "test",
    )

    async def go() -> list[str]:
        async with opened(config) as roles:
            return list(roles)

    assert clock.run(go, clock="virtual") == ["task", "navigator", "judge"]


def opened(config: Config) -> AbstractAsyncContextManager[Mapping[str, Role]]:
    return open_roles(config, make_roles(config))


EMBEDDED = {"embedding": {"role": "other"}}


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("code_evolve", {}, ["code", "meta"]),
        ("code_evolve", {"exploring_role": "other"}, ["code", "meta", "other"]),
        ("cse", {"memory": {"location": "m", **EMBEDDED}}, ["code", "agent", "embedding", "other"]),
        ("cse", {"memory": EMBEDDED}, ["code", "agent", "embedding"]),
        ("ace", EMBEDDED, ["task", "reflection", "embedding", "other"]),
        ("ace", {"embedding": {"by": "hashing", "role": "other"}}, ["task", "reflection", "embedding"]),
    ],
)
def test_roles_that_settings_name_are_the_algorithms_too(
    name: str, settings: dict[str, object], expected: list[str]
) -> None:
    config = parse_config({"algorithm": {"name": name, **settings}, "budget": {"proposals": 1}}, "test")
    assert list(make_roles(config)) == expected


def test_a_role_that_a_setting_names_needs_a_model() -> None:
    llm = {"backend": "openai", "roles": {"code": {"model": "m"}, "meta": {"model": "m"}}}
    algorithm = {"name": "code_evolve", "exploring_role": "explorer"}
    config = parse_config({"algorithm": algorithm, "budget": {"proposals": 1}, "llm": llm}, "test")
    with pytest.raises(InputError, match=r"llm\.model is missing, and so is llm\.roles\.explorer\.model; set one"):
        make_roles(config)


def test_settings_that_are_wrong_are_told_where_roles_are_asked_for() -> None:
    algorithm = {"name": "code_evolve", "exploring_role": ""}
    config = parse_config({"algorithm": algorithm, "budget": {"proposals": 1}}, "test")
    with pytest.raises(InputError, match=r"algorithm\.exploring_role: .*at least 1 character"):
        make_roles(config)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, OpenAITransport), ({"transport": "openai"}, OpenAITransport), ({"transport": "aiohttp"}, AioHTTPTransport)],
)
async def test_an_endpoint_is_reached_over_the_transport_the_config_names(
    settings: dict[str, str], expected: type[Transport]
) -> None:
    llm = {"backend": "openai", "model": "m", "base_url": "http://example.invalid/v1", **settings}
    async with opened(parse_config({"budget": {"proposals": 1}, "llm": llm}, "test")) as roles:
        [member] = roles["task"].members
        transport = member.transport
        assert type(transport) is expected
        assert isinstance(transport, HasBaseURL)
        assert transport.base_url == "http://example.invalid/v1"


@pytest.mark.anyio
@pytest.mark.parametrize("transport", ["openai", "aiohttp"])
async def test_an_azure_endpoint_gets_its_own_key(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "not-this-one-0123456789")
    async with azure() as endpoint:
        llm = {"backend": "openai", "model": "d", "base_url": endpoint, "transport": transport}
        config = parse_config({"budget": {"proposals": 1}, "llm": {**llm, "azure_api_version": VERSION}}, "test")
        async with opened(config) as roles:
            [member] = roles["task"].members
            reply = await member.transport.chat(ChatRequest("d", (Message("user", "hello"),)), timeout=60)
    assert reply.text == "d"


@pytest.mark.anyio
@pytest.mark.parametrize("transport", ["openai", "aiohttp"])
async def test_an_answer_is_bounded_as_the_config_says(transport: str) -> None:
    async def long(_: web.Request) -> web.Response:
        return web.json_response({"choices": [{"message": {"content": "a" * 5000}}]})

    async with server(long) as url:
        llm = {"backend": "openai", "model": "m", "base_url": url, "transport": transport, "max_reply_bytes": 4000}
        async with opened(parse_config({"budget": {"proposals": 1}, "llm": llm}, "test")) as roles:
            [member] = roles["task"].members
            with pytest.raises(RejectedError, match="longer than 4000 bytes"):
                await member.transport.chat(ChatRequest("m", (Message("user", "hello"),)), timeout=60)


def test_an_unknown_transport_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"llm\.transport.*'openai' or 'aiohttp'"):
        parse_config({"budget": {"proposals": 1}, "llm": {"transport": "carrier pigeon"}}, "test")


@pytest.mark.anyio
async def test_models_of_one_backend_share_a_transport_and_the_roles_own_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_KEY", "sk-theirs-0123456789")
    there = {"base_url": "http://there.invalid/v1", "api_key_env": "THEIR_KEY"}
    llm = {
        "backend": "openai",
        "model": "m",
        "base_url": "http://here.invalid/v1",
        "roles": {
            "reflection": {"concurrency": 3, "models": [{"model": "a"}, {"model": "b", **there}], "bandit": "ucb"},
            "judge": {"model": "c", "temperature": 0, **there},
        },
    }
    async with opened(parse_config({"budget": {"proposals": 1}, "llm": llm}, "test")) as roles:
        [task], [first, second], [judge] = (roles[name].members for name in ("task", "reflection", "judge"))
        assert task.transport is first.transport is not second.transport
        assert second.transport is judge.transport
        assert (first.name, second.name, judge.temperature) == ("a", "b", 0)
        assert task.scheduler is None
        assert first.scheduler is not None
        assert (first.scheduler.limit, second.scheduler) == (3, first.scheduler)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("role", "says"),
    [
        ({"api_key_file": "nowhere/key"}, r"llm\.roles\.task\.api_key_file: there is no such file"),
        (
            {"models": [{"model": "a"}, {"model": "b"}], "bandit": "ucb1"},
            r"llm\.roles\.task\.bandit: unknown bandit 'ucb1'; did you mean 'ucb'",
        ),
    ],
)
async def test_what_a_role_names_and_is_not_there_is_named(role: dict[str, object], says: str) -> None:
    llm = {"backend": "openai", "model": "m", "roles": {"task": role}}
    with pytest.raises(InputError, match=says):
        async with opened(parse_config({"budget": {"proposals": 1}, "llm": llm}, "test")):
            pass


@pytest.mark.anyio
async def test_a_role_may_ask_for_streams_by_itself_or_not() -> None:
    llm = {"stream": True, "idle_seconds": 5, "roles": {"task": {"stream": False}}}
    assert await streaming(llm) == {"task": (False, None), "reflection": (True, 5.0)}
    assert await streaming({"roles": {"task": {"stream": True}}}) == {"task": (True, None), "reflection": (False, None)}


async def streaming(llm: dict[str, object]) -> dict[str, tuple[bool, float | None]]:
    async with opened(parse_config({"budget": {"proposals": 1}, "llm": llm}, "test")) as roles:
        return {name: (member.stream, member.idle_seconds) for name, role in roles.items() for member in role.members}


@pytest.mark.anyio
async def test_a_role_asks_for_streams_as_the_config_says() -> None:
    llm = {"stream": True, "idle_seconds": 5}
    async with opened(parse_config({"budget": {"proposals": 1}, "llm": llm}, "test")) as roles:
        members = [member for role in roles.values() for member in role.members]
        assert {(member.stream, member.idle_seconds) for member in members} == {(True, 5.0)}


def test_a_time_between_pieces_needs_pieces() -> None:
    with pytest.raises(InputError, match=r"llm: idle_seconds.*set stream = true"):
        parse_config({"budget": {"proposals": 1}, "llm": {"idle_seconds": 5}}, "test")
