"""Servers of ours: started, kept alive, and ended with everything they started, whatever ends us."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from flowevolve._util import secrets as keys
from flowevolve._util.errors import BackendUnreachableError, InputError
from flowevolve._util.tasks import Pulse
from flowevolve.core.model import ChatRequest, LLMError, Message
from flowevolve.llm.scheduling.metrics_probe import MetricsProbe
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.vllm.local import local_servers
from flowevolve.vllm.serving import check_vllm, serve_vllm
from flowevolve.vllm.settings import VLLMSettings
from tests.vllm.conftest import ROOT, FakeVLLM, Heard, parent

pytestmark = pytest.mark.anyio

REQUEST = ChatRequest("m", (Message("user", "hello"),), max_tokens=5)


@asynccontextmanager
async def serving(
    fake: FakeVLLM, *fates: str, heard: Heard | None = None, unanswered: Pulse | None = None, **settings: object
) -> AsyncIterator[list[str]]:
    checked = VLLMSettings.model_validate({**fake.settings(*fates), **settings})
    log = fake.folder / "vllm.log"
    async with serve_vllm("m", checked, log=log, on_event=(heard or Heard()).tell, unanswered=unanswered) as urls:
        yield urls


async def reply(url: str) -> str:
    transport = AioHTTPTransport(url, None, max_connections=1)
    try:
        return (await transport.chat(REQUEST, timeout=30.0)).model
    finally:
        await transport.aclose()


async def test_it_serves_while_the_block_lasts_and_leaves_nothing_behind(fake: FakeVLLM) -> None:
    heard = Heard()
    async with serving(fake, heard=heard) as urls:
        assert await reply(urls[0]) == "m"
        assert len(fake.alive()) == 2
    assert heard.kinds() == ["healthy"]
    assert len(fake.processes()) == 2
    assert fake.alive() == []
    assert "loading" in (fake.folder / "vllm.log").read_text()


async def test_a_server_that_ignores_the_request_to_end_is_killed(fake: FakeVLLM) -> None:
    async with serving(fake, "stubborn", stop_seconds=0.1):
        assert len(fake.alive()) == 2
    assert fake.alive() == []


async def test_what_is_raised_inside_comes_out_as_it_is(fake: FakeVLLM) -> None:
    with pytest.raises(InputError, match=r"^mine$"):
        async with serving(fake):
            raise InputError("mine")
    assert fake.alive() == []


async def test_cancelled_it_still_ends_everything(fake: FakeVLLM) -> None:
    with anyio.CancelScope() as scope:
        async with serving(fake):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert fake.alive() == []


async def test_one_that_dies_is_back_at_the_same_address(fake: FakeVLLM) -> None:
    heard = Heard()
    async with serving(fake, "die_after_1", "serve", heard=heard) as urls:
        assert await reply(urls[0]) == "m"
        with pytest.raises(LLMError):
            await reply(urls[0])
        await heard.until("healthy", "died", "healthy")
        assert await reply(urls[0]) == "m"
        first, second = fake.starts()
        assert first.arguments == second.arguments
        assert set(fake.alive()) == set(second.pids)
    assert "ended with code 9" in heard.server_changes[1].detail
    assert "restart 1 of 3" in heard.server_changes[1].detail
    assert fake.alive() == []


@pytest.mark.parametrize("victim", ["server", "keeper"])
async def test_one_that_is_killed_is_back_too(fake: FakeVLLM, victim: str) -> None:
    heard = Heard()
    async with serving(fake, heard=heard) as urls:
        server = fake.starts()[0].pids[0]
        os.kill(server if victim == "server" else parent(server), signal.SIGKILL)
        await heard.until("healthy", "died", "healthy")
        assert "was killed by SIGKILL" in heard.server_changes[1].detail
        assert await reply(urls[0]) == "m"
        assert server not in fake.alive()
    # A child in a session of its own is out of reach once nobody but the killed keeper knew of it.
    assert fake.alive() == ([] if victim == "server" else [fake.processes()[1]])


async def test_one_that_hangs_is_ended_and_back_once_it_is_doubted(fake: FakeVLLM) -> None:
    heard, unanswered = Heard(), Pulse()
    async with serving(fake, heard=heard, unanswered=unanswered, hung_seconds=0.3, stop_seconds=0.2) as urls:
        first = fake.starts()[0].pids
        await anyio.wait_all_tasks_blocked()
        os.kill(first[0], signal.SIGSTOP)
        unanswered.fire()
        await heard.until("healthy", "died", "healthy")
        assert "was not healthy for 0.3 s" in heard.server_changes[1].detail
        assert "restart 1 of 3" in heard.server_changes[1].detail
        assert await reply(urls[0]) == "m"
        assert not set(first) & set(fake.alive())
    assert fake.alive() == []


async def test_one_that_hangs_again_and_again_is_given_up(fake: FakeVLLM) -> None:
    heard, unanswered = Heard(), Pulse()
    async with serving(fake, heard=heard, unanswered=unanswered, hung_seconds=0.3, stop_seconds=0.2, restarts=1):
        for start, last in enumerate(["healthy", "gave_up"]):
            await anyio.wait_all_tasks_blocked()  # a doubt from before it is watched is none of it
            os.kill(fake.starts()[start].pids[0], signal.SIGSTOP)
            unanswered.fire()
            await heard.until(*["healthy", "died", "healthy", last][: 3 + start])
        assert fake.alive() == []


async def test_one_that_is_doubted_and_healthy_is_left_alone(fake: FakeVLLM) -> None:
    heard, unanswered = Heard(), Pulse()
    async with serving(fake, heard=heard, unanswered=unanswered, hung_seconds=30.0) as urls:
        for _ in range(5):
            unanswered.fire()
            assert await reply(urls[0]) == "m"
        assert len(fake.starts()) == 1
    assert heard.kinds() == ["healthy"]


async def test_it_is_given_up_after_so_many_restarts(fake: FakeVLLM) -> None:
    heard = Heard()
    async with serving(fake, "die_after_0", "die", "die", heard=heard, restarts=2) as urls:
        with pytest.raises(LLMError):
            await reply(urls[0])
        await heard.until("healthy", "died", "died", "gave_up")
        assert "ValueError: no such model" in heard.server_changes[-1].detail
        assert "after 2 restarts" in heard.server_changes[-1].detail
        assert fake.alive() == []
    assert len(fake.starts()) == 3


async def test_it_is_given_up_where_it_cannot_be_started_again(fake: FakeVLLM) -> None:
    heard = Heard()
    async with serving(fake, heard=heard, restarts=2):
        log = fake.folder / "vllm.log"
        log.unlink()
        log.mkdir()  # in the place of its log, which can't be opened now
        os.kill(fake.starts()[0].pids[0], signal.SIGKILL)
        await heard.until("healthy", "died", "died", "gave_up")
    assert f"vLLM can't be started: [Errno 21] Is a directory: '{log}'" in heard.server_changes[-1].detail
    assert fake.alive() == []


async def test_dying_at_the_start_is_an_error_that_quotes_the_log(fake: FakeVLLM) -> None:
    with pytest.raises(BackendUnreachableError) as raised:
        async with serving(fake, "die"):
            raise AssertionError("it is not up")
    said = str(raised.value)
    assert "ended with code 1" in said
    assert "ValueError: no such model | see above" in said
    assert str(fake.folder / "vllm.log") in said
    assert "\n" not in said
    assert fake.alive() == []


async def test_keys_in_the_log_are_not_quoted(fake: FakeVLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_known", ["no such model"])
    with pytest.raises(BackendUnreachableError, match=r"ValueError: \[key\] \| see above"):
        async with serving(fake, "die"):
            raise AssertionError("it is not up")


async def test_taking_too_long_is_an_error_and_ends_it(fake: FakeVLLM) -> None:
    with pytest.raises(BackendUnreachableError, match=r"not healthy after 1 s .*vllm\.startup_seconds"):
        async with serving(fake, "hang", startup_seconds=1.0):
            raise AssertionError("it is not up")
    assert fake.alive() == []


async def test_a_start_that_takes_long_tells_how_it_goes(fake: FakeVLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowevolve.vllm.server.PROGRESS_SECONDS", 0.1)
    heard = Heard()

    async def start() -> None:
        async with serving(fake, "hang", heard=heard):
            raise AssertionError("it is not up")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        with anyio.fail_after(60):
            while not any(each.detail.endswith(": loading") for each in heard.progress):
                await heard.pulse.wait()
        tasks.cancel_scope.cancel()
    assert heard.kinds() == []
    assert fake.alive() == []


async def test_several_replicas_each_have_port_device_and_log(fake: FakeVLLM) -> None:
    async with serving(fake, replicas=2, devices=("0", "1,2")) as urls:
        assert len(set(urls)) == 2
        assert [await reply(url) for url in urls] == ["m", "m"]
        devices = {start.environment["CUDA_VISIBLE_DEVICES"] for start in fake.starts()}
        assert devices == {"0", "1,2"}
    assert {path.name for path in fake.folder.glob("*.log")} == {"vllm.log", "vllm-1.log"}
    assert fake.alive() == []


async def test_one_replica_that_fails_ends_the_others(fake: FakeVLLM) -> None:
    with pytest.raises(BackendUnreachableError):
        async with serving(fake, "serve", "die", replicas=2):
            raise AssertionError("it is not up")
    assert fake.alive() == []


async def test_metrics_are_beside_the_address(fake: FakeVLLM) -> None:
    async with serving(fake) as urls, MetricsProbe(lambda: urls[0]) as probe:
        load = await probe.load()
        assert load is not None
        assert (load.running, load.waiting) == (0, 0)


async def test_a_taken_port_is_named(fake: FakeVLLM) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = VLLMSettings.model_validate({**fake.settings(), "port": port})
        with pytest.raises(InputError, match=rf"vllm\.port: 127\.0\.0\.1:{port} is taken"):
            await check_vllm(settings)


async def test_the_name_of_a_host_is_not_looked_up_on_the_event_loop(
    fake: FakeVLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[threading.Thread] = []

    def look_up(host: str, port: int, *, type: socket.SocketKind) -> Sequence[object]:  # noqa: A002 - socket's own name
        asked.append(threading.current_thread())
        return look_up_here(host, port, type=type)

    look_up_here = socket.getaddrinfo
    monkeypatch.setattr("flowevolve.vllm.local.socket.getaddrinfo", look_up)
    settings = VLLMSettings.model_validate({**fake.settings(), "host": "localhost"})
    async with local_servers(
        "m", settings, log=fake.folder / "vllm.log", on_event=Heard().tell, unanswered=Pulse(), api_key=None
    ):
        assert asked
        assert threading.current_thread() not in asked


async def test_an_address_of_another_machine_is_named(fake: FakeVLLM) -> None:
    with pytest.raises(InputError, match=r"vllm\.host: can't listen on 192\.0\.2\.1"):
        await check_vllm(VLLMSettings.model_validate({**fake.settings(), "host": "192.0.2.1"}))


async def test_a_port_that_is_not_for_this_user_is_not_blamed_on_the_host(
    fake: FakeVLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: socket.socket, address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("flowevolve.vllm.local.socket.socket.bind", refuse)
    with pytest.raises(InputError, match=r"vllm\.port: can't listen on 127\.0\.0\.1:80: Permission denied; choose"):
        await check_vllm(VLLMSettings.model_validate({**fake.settings(), "port": 80}))


async def test_a_log_that_cannot_be_written_is_named(fake: FakeVLLM) -> None:
    settings = VLLMSettings.model_validate(fake.settings())
    with pytest.raises(InputError, match="can't be written"):
        async with serve_vllm("m", settings, log=fake.folder / "bin" / "vllm" / "x.log"):
            raise AssertionError("it is not up")


SUPERVISOR = """
import json, sys
from pathlib import Path
import anyio
from flowevolve.vllm.local import local_servers
from flowevolve.vllm.serving import serve_vllm
from flowevolve.vllm.settings import VLLMSettings

async def main():
    settings = VLLMSettings.model_validate(json.loads(sys.argv[1]))
    async with serve_vllm("m", settings, log=Path(sys.argv[2])) as urls:
        print(urls[0], flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("fate", ["serve", "stubborn"])
def test_no_process_outlives_us(
    fake: FakeVLLM, wait_for_death: Callable[[int], None], number: signal.Signals, fate: str
) -> None:
    """With its parent killed, with what it started in another session, and with a server that does not want to end."""
    settings = json.dumps({**fake.settings(fate), "stop_seconds": 0.5})
    command = [sys.executable, "-c", SUPERVISOR, settings, str(fake.folder / "vllm.log")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        assert len(fake.alive()) == 2
        process.send_signal(number)
        process.wait(30)
    for pid in fake.processes():
        wait_for_death(pid)
    assert fake.alive() == []
