"""A key, wherever it was put, reaches its server, and no error, log, event, journal, report or export has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from anyio.from_thread import start_blocking_portal

from flowevolve._util import secrets as keys
from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.core.model import ChatRequest, EmbedRequest, LLMError, Message
from flowevolve.runner.llm import make_transport
from tests.support.command import flowevolve
from tests.support.http_transports import KINDS, Kind
from tests.support.loopback import server

KEY = "sk-distinctive-0123456789abcdefXYZ"
EXTRA = "distinctive-extra-0123456789"
PLACES = {"a header": "", "the path": "/{key}/v1"}
"""What the base URL has behind its first ``/v1``, by where the key goes."""
HOW = [
    "400",
    "401",
    "404",
    "429",
    "500",
    "a reason",
    "no JSON",
    "an error in the body",
    "a redirect",
    "a header",
    "cut",
]


@pytest.fixture(autouse=True)
def keys_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_known", [])
    monkeypatch.setenv("SOME_KEY", KEY)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Gateway-Auth: Bearer {EXTRA}\nX-Other: {EXTRA}")


def carried(request: web.Request) -> str:
    """All that a request had of keys, as a server might repeat it."""
    return f"{request.path} {dict(request.headers)}"


async def fail(how: str, request: web.Request) -> web.StreamResponse:
    """Answer with all that the request carried, in one of these ways."""
    told = carried(request)
    if how.isdecimal():
        problem = {"message": f"{'no ' * 40}{told}", "param": told, "code": told}
        return web.json_response({"error": problem}, status=int(how))
    match how:
        case "a reason":
            return web.Response(status=502, reason=told)
        case "no JSON":
            return web.Response(text=told)
        case "an error in the body":
            return web.json_response({"error": {"message": told}})
        case "a redirect":
            return web.Response(status=307, headers={"Location": f"https://{KEY}.example.invalid/{told}?{told}"})
        case "a header":
            return web.Response(headers={f"X-{KEY}": f"{told}" * 100})
    response = web.StreamResponse(headers={"Content-Length": "9999"})
    await response.prepare(request)
    await response.write(told.encode())
    assert request.transport is not None
    request.transport.close()
    return response


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", HOW)
async def test_no_error_repeats_a_key(kind: Kind, place: str, how: str) -> None:
    seen: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        seen.append(carried(request))
        return await fail(how, request)

    async with server(handle) as url:
        settings = {
            "base_url": url + PLACES[place],
            "api_key_env": "SOME_KEY",
            "transport": kind.__module__.split(".")[-1],
        }
        llm = parse_config({"budget": {"rollouts": 9}, "llm": {"backend": "openai", "model": "m", **settings}}, "t").llm
        transport = make_transport(llm)
        assert isinstance(transport, kind)
        said = (Message("user", "hello"),)
        errors = []
        for ask in (
            lambda: transport.chat(ChatRequest("m", said), timeout=30),
            lambda: transport.chat(ChatRequest("m", said, stream=True), timeout=30),
            lambda: transport.embed(EmbedRequest("m", ("hello",)), timeout=30),
            transport.models,
        ):
            with pytest.raises(LLMError) as caught:
                await ask()
            errors.append(str(caught.value))
        await transport.aclose()
    assert all(KEY in told for told in seen)
    assert not [error for error in errors for key in (KEY[:20], KEY[-12:], EXTRA[:20]) if key in error]


CONFIG = """
[llm]
backend = "openai"
transport = "{transport}"
base_url = "{url}"
api_key_env = "SOME_KEY"
model = "m"
patience_seconds = 0

[budget]
proposals = 4
"""


@contextmanager
def repeating(models: str) -> Iterator[str]:
    """A server that repeats in all its answers what the request carried, and at last refuses; in another thread."""
    asked = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        told = carried(request)
        if request.path.endswith("/models"):
            return web.json_response({"data": [{"id": models}, {"id": told}]})
        asked += 1
        if asked > 200:
            return await fail("401", request)
        if asked % 5 == 4:
            return await fail("400", request)
        message = {"content": f"```\n{told}\n```", "reasoning": told}
        return web.json_response({"model": told, "choices": [{"message": message, "finish_reason": told}]})

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server(handle)) as url:
        yield url


@pytest.mark.parametrize(("transport", "place"), [("openai", "the path"), ("aiohttp", "a header")])
def test_nothing_that_a_run_leaves_or_says_has_a_key(transport: str, place: str, tmp_path: Path) -> None:
    with repeating("m") as url:
        (tmp_path / "run.toml").write_text(CONFIG.format(transport=transport, url=url + PLACES[place]))
        said = [
            flowevolve("run", "run.toml", "--out", "out", "--events", "-v", cwd=tmp_path),
            flowevolve("resume", "out", "--set", "budget.proposals=9", cwd=tmp_path),
            flowevolve("report", "out", cwd=tmp_path),
            flowevolve("status", "out", cwd=tmp_path),
            flowevolve("export", "out", cwd=tmp_path),
        ]
    with repeating("another") as url:
        (tmp_path / "run.toml").write_text(CONFIG.format(transport=transport, url=url + PLACES[place]))
        said.append(flowevolve("check", "run.toml", cwd=tmp_path))
    assert "another" in said[-1].stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    written = b"".join(path.read_bytes() for path in files)
    assert {"config.toml", "journal.sqlite", "events.jsonl", "calls.jsonl"} <= {path.name for path in files}
    assert written.count(b"[key]") > 10
    for output in (written, *(part.encode() for done in said for part in (done.stdout, done.stderr))):
        for key in (KEY, EXTRA):
            assert key[:20].encode() not in output
            assert key[-12:].encode() not in output


@pytest.mark.parametrize(
    ("llm", "says"),
    [
        (
            {"base_url": f"https://h.example/{KEY}/v1"},
            "llm.base_url: the address seems to have a key in its path.*'{key}' there",
        ),
        (
            {"base_urls": [f"https://h.example/v1/aB3{'dE5gH7jK9m' * 3}"]},
            r"llm.base_urls.0: the address seems to have a key",
        ),
        ({"base_url": "https://{key}.example/v1"}, "llm.base_url: .* in its host"),
        ({"extra": {"extra_headers": {"X-Auth": KEY}}}, "llm.extra: 'X-Auth' seems to be a key"),
        ({"extra": {"extra_headers": {"Cookie": KEY}}}, "llm.extra: 'Cookie' seems to be a key"),
    ],
)
def test_a_key_in_the_configuration_is_refused_and_not_repeated(llm: dict[str, object], says: str) -> None:
    table = {"budget": {"rollouts": 9}, "llm": {"backend": "openai", "model": "m", **llm}}
    with pytest.raises(InputError, match=says) as raised:
        parse_config(table, "test")
    assert KEY not in json.dumps(str(raised.value))


@pytest.mark.parametrize(
    "path",
    [
        "/v1/0123456789abcdef0123456789abcdef/gateway/openai",
        "/v2/abc123def456gh/openai/v1",
        "/v1/projects/my-project-123456/locations/us-central1/endpoints/1234567890123456789",
        "/v1/accounts/550e8400-e29b-41d4-a716-446655440000",
        "/models/Meta-Llama-3.1-70B-Instruct-Turbo-128K-2024/v1",
    ],
)
def test_the_names_and_numbers_that_addresses_have_are_no_keys(path: str) -> None:
    table = {"budget": {"rollouts": 9}, "llm": {"backend": "openai", "model": "m", "base_url": f"https://h{path}"}}
    assert parse_config(table, "test").llm.base_url == f"https://h{path}"


def test_a_place_for_a_key_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY")
    table = {"backend": "openai", "model": "m", "base_url": "https://h/{key}/v1", "api_key_env": "SOME_KEY"}
    with pytest.raises(InputError, match=r"has a place for a key, but no key is given; name .* llm\.api_key_env"):
        make_transport(parse_config({"budget": {"rollouts": 9}, "llm": table}, "test").llm)


def test_a_short_key_may_be_a_word_that_a_model_means() -> None:
    keys.hide("password")
    assert keys.redacted("the password is password") == "the [key] is [key]"
    assert keys.redacted("the password is password", keys.SURELY_A_KEY) == "the password is password"
