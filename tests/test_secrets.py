"""A key reaches the server and nothing else: not what a run writes, not what it prints, not its errors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from aiohttp import web

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
rollouts = 30
"""


@asynccontextmanager
async def echoing(status: int, seen: set[str]) -> AsyncIterator[str]:
    """A server that says no to every chat, with the request's own header in its words."""

    async def chat(request: web.Request) -> web.Response:
        header = request.headers["Authorization"]
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


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.anyio
@pytest.mark.parametrize("transport", ["openai", "aiohttp"])
@pytest.mark.parametrize(("status", "code"), [(400, 0), (401, 3), (429, 3)])
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
        command = [sys.executable, "-c", "from flowevolve.cli import main; main()", "run", "run.toml", "--events", "-v"]
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
