"""``flowevolve gateway``: it shares a server, until Ctrl-C."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process

from flowevolve.core.model import ChatRequest, Message
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld
from tests.support.command import flowevolve

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def started(*arguments: str) -> AsyncGenerator[tuple[Process, str]]:
    """The process of a gateway, and what it said until it listened."""
    command = [sys.executable, "-m", "flowevolve", "gateway", *arguments, "--port", "0"]
    async with await anyio.open_process(command, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        said = ""
        try:
            with anyio.fail_after(300):
                while "Ctrl-C ends it" not in said:
                    said += (await process.stdout.receive()).decode()
            yield process, said
        finally:
            if process.returncode is None:
                process.kill()


async def test_it_passes_requests_on_until_it_is_interrupted_also_to_a_server_that_comes_later(tmp_path: Path) -> None:
    backend = SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["instant"], model="m")
    async with serve(backend) as server:
        pass
    async with started(server, "--cache", str(tmp_path / "cache")) as (process, said):
        assert "the server does not answer yet" in said
        url = said.partition(" at ")[2].partition(";")[0]
        transport = AioHTTPTransport(url, None, max_connections=1)
        request = ChatRequest("m", (Message("user", "hello"),), seed=1)
        async with serve(backend, port=int(server.rpartition(":")[2].removesuffix("/v1"))):
            first, second = [await transport.chat(request, timeout=300) for _ in range(2)]
            assert await transport.models() == ("m",)
        await transport.aclose()
        assert first == second
        assert backend.service.stats.finished == 1
        process.send_signal(signal.SIGINT)
        with anyio.fail_after(300):
            assert await process.wait() == 0
    assert (tmp_path / "cache").exists()


async def test_it_says_where_a_server_has_no_list_of_models() -> None:
    backend = SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["instant"], model="m")
    async with serve(backend) as server, started(f"{server}/wrong") as (_, said):
        assert "no list of models, so only the first requests will tell whether the URL is right: HTTP 404" in said


async def test_one_wrong_address_among_several_is_named() -> None:
    backend = SimBackend(RulesWorld(PRESETS["normal"]), PROFILES["instant"], model="m")
    async with serve(backend) as server:
        command = [sys.executable, "-m", "flowevolve", "gateway", server, f"{server}/wrong", "--port", "0"]
        with anyio.fail_after(300):
            done = await anyio.run_process(command, check=False)
    assert done.returncode == 3
    assert done.stderr.decode().startswith(f"error: gateway: {server}/wrong: HTTP 404")


def test_a_key_in_an_address_is_not_repeated(tmp_path: Path) -> None:
    done = flowevolve("gateway", "https://x.org/v1?key=a-secret", cwd=tmp_path)
    assert done.returncode == 2
    assert "where a key might stand" in done.stderr
    assert "a-secret" not in done.stdout + done.stderr


def test_a_file_that_is_no_cache_is_told_by_its_option(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("something else, and longer than the header of a database would be")
    done = flowevolve("gateway", "http://127.0.0.1:1/v1", "--cache", "cache", "--port", "0", cwd=tmp_path)
    assert done.returncode == 2
    assert "can't be used as a response cache" in done.stderr
    assert "name another file in --cache" in done.stderr
    assert "llm.cache.path" not in done.stderr


def test_less_room_than_the_longest_request_takes_is_refused(tmp_path: Path) -> None:
    done = flowevolve("gateway", "http://127.0.0.1:1/v1", "--waiting-mb", "63", cwd=tmp_path)
    assert done.returncode == 2
    assert "--waiting-mb" in done.stderr


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = flowevolve("gateway", "http://127.0.0.1:1/v1", "--port", str(port), cwd=tmp_path)
    assert done.returncode == 2
    assert f"can't listen on 127.0.0.1:{port}: " in done.stderr
    assert "Choose another --port" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a file that takes nothing")
def test_another_failure_is_not_taken_for_that() -> None:
    command = [sys.executable, "-m", "flowevolve", "gateway", "http://127.0.0.1:1/v1", "--port", "0"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode != 0
    assert "No space left on device" in done.stderr
    assert "can't listen" not in done.stderr
