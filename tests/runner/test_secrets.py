"""A key reaches the server and nothing else: not what a run writes, not what it prints, not its errors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.core.model import ChatRequest, RejectedError
from flowevolve.runner.llm import make_roles, open_roles

SENTINEL = "sk-sentinel-0123456789abcdefXYZ"
CONFIG = """
[llm]
backend = "openai"
transport = "{transport}"
base_url = "{url}"
model = "m"
patience_seconds = 0
{key}

[llm.roles.reflection]
base_url = "{url}/"

[budget]
rollouts = 100
"""


@asynccontextmanager
async def echoing(status: int, seen: set[str]) -> AsyncIterator[str]:
    """A server that says no to every chat, with the request's own header in its words."""

    async def chat(request: web.Request) -> web.Response:
        header = request.headers.get("Authorization", "nothing")
        seen.add(header)
        return web.json_response({"error": {"message": f"{'no ' * 160} to {header!r}"}}, status=status)

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("section", "says"),
    [
        (
            {"llm": {"base_url": f"https://h/v1?api_key={SENTINEL}"}},
            "llm.base_url: the address must end before its '?'",
        ),
        (
            {"llm": {"base_urls": ["https://h/v1", f"https://u:{SENTINEL}@h/v1"]}},
            "llm.base_urls.1: the address must not have a user",
        ),
        ({"llm": {"extra": {"api_key": SENTINEL}}}, "llm.extra: 'api_key' seems to be a key"),
        ({"llm": {"extra": {"a": [{"Authorization": SENTINEL}]}}}, "'Authorization' seems to be a key"),
        (
            {"llm": {"roles": {"task": {"extra": {"x": {"openai_api_key": SENTINEL}}}}}},
            "llm.roles.task.extra: 'openai_api_key' seems",
        ),
        ({"llm": {"settings": {"x": {"accessToken": SENTINEL}}}}, "llm.settings: 'accessToken' seems to be a key"),
        ({"vllm": {"flags": ["--api-key", SENTINEL]}}, "flag --api-key: a key .* set VLLM_API_KEY where"),
        ({"vllm": {"flags": [f"--hf_token={SENTINEL}"]}}, "flag --hf-token: a key .* set HF_TOKEN where"),
        ({"vllm": {"environment": {"WANDB_API_KEY": SENTINEL}}}, "environment: WANDB_API_KEY: a key"),
    ],
)
def test_a_key_in_the_configuration_is_refused_and_not_repeated(section: dict[str, Any], says: str) -> None:
    table = {"budget": {"rollouts": 100}, **section, "llm": {"backend": "vllm", "model": "m", **section.get("llm", {})}}
    with pytest.raises(InputError, match=says) as raised:
        parse_config(table, "test")
    assert SENTINEL not in str(raised.value)


def test_what_only_sounds_like_a_key_is_none() -> None:
    extra = {
        "max_tokens": 5,
        "prompt_cache_key": "flowevolve",
        "stop_token": "</s>",
        "skip_special_tokens": True,
        "key": 5,
    }
    environment = {"VLLM_LOGGING_LEVEL": "DEBUG", "TOKENIZERS_PARALLELISM": "false", "HF_TOKEN": ""}
    table = {"backend": "vllm", "model": "m", "extra": extra}
    config = parse_config({"budget": {"rollouts": 100}, "llm": table, "vllm": {"environment": environment}}, "test")
    assert (config.llm.extra, config.vllm.environment) == (extra, environment)


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.anyio
@pytest.mark.parametrize("transport", ["openai", "aiohttp"])
@pytest.mark.parametrize(("status", "code"), [(400, 3), (401, 3), (429, 3)])
async def test_a_server_that_repeats_the_key_gets_it_nowhere(
    transport: str, status: int, code: int, tmp_path: Path
) -> None:
    seen: set[str] = set()
    file = tmp_path / "key"
    file.write_text(SENTINEL)
    file.chmod(0o644)
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    async with echoing(status, seen) as url:
        text = CONFIG.format(transport=transport, url=url, key=f"api_key_file = {json.dumps(str(file))}")
        (folder / "run.toml").write_text(text)
        command = [
            sys.executable,
            "-c",
            "from flowevolve.cli.app import main; main()",
            "run",
            "run.toml",
            "--events",
            "-v",
        ]
        with anyio.fail_after(60):
            done = await anyio.run_process(
                [*command, "--out", "out"], cwd=folder, check=False, env={**environment, "OPENAI_API_KEY": "unused-key"}
            )
    assert seen == {f"Bearer {SENTINEL}"}
    assert done.returncode == code, done.stderr
    assert b"key.readable_by_others" in done.stderr + done.stdout
    written = everything_in(folder)
    assert b"[key]" in written + done.stderr
    assert b"api_key_file" in (folder / "out" / "config.toml").read_bytes()
    for output in (written, done.stdout, done.stderr):
        assert SENTINEL[:12].encode() not in output
        assert b"unused-key" not in output


@pytest.mark.anyio
@pytest.mark.parametrize("transport", ["openai", "aiohttp"])
async def test_openais_key_is_sent_to_another_server_only_if_it_is_named(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SENTINEL)
    seen: set[str] = set()
    async with echoing(400, seen) as url:
        for named in ({}, {"api_key_env": "OPENAI_API_KEY"}):
            llm = {"backend": "openai", "transport": transport, "base_url": url, "model": "m", **named}
            before = len(seen)
            config = parse_config({"budget": {"rollouts": 100}, "llm": llm}, "test")
            async with open_roles(config, make_roles(config)) as roles:
                [task] = roles["task"].members
                with pytest.raises(RejectedError):
                    await task.transport.chat(ChatRequest("m", ()), timeout=30)
            assert len(seen) == before + 1
            assert (f"Bearer {SENTINEL}" in seen) == bool(named)
